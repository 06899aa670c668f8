/** What scripted models of end-to-end tests say, in the markup of their family. */

import type { Json } from "../../shared/core/message.ts";
import { asArguments } from "./harness.ts";

/** A reasoning block before the reply. */
export function think(text: string): string {
  return `<think>\n${text}\n</think>\n\n`;
}

/** A tool call, spaced as models write JSON. */
export function toolCall(name: string, args: Record<string, Json>): string {
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${asArguments(args)}}\n</tool_call>`;
}

/** A tool offered in a request. */
export function tool(name: string, fields: readonly string[] = []): {
  type: "function";
  function: { name: string; description: string; parameters: { [key: string]: Json } };
} {
  return {
    type: "function",
    function: {
      name,
      description: `Does ${name}.`,
      parameters: {
        type: "object",
        properties: Object.fromEntries(fields.map((field) => [field, { type: "string" }])),
      },
    },
  };
}
