/** The conversation on which parsers and engines are tried: what an agent's history has, in small. */

import type { AssistantMessage, Message, ToolDefinition } from "../shared/core/message.ts";
import type { Renderer } from "../shared/ports/renderer.ts";

const PARAMETERS = {
  type: "object",
  properties: { word: { type: "string" }, limit: { type: "integer", default: 10 } },
  required: ["word"],
};
export const PROBE_TOOL: ToolDefinition = {
  name: "look_up",
  parameters: PARAMETERS,
  raw: { name: "look_up", description: "Looks a word up.", parameters: PARAMETERS },
};
export const PROBE_REASONING = "The word is in the dictionary.";
export const PROBE_ARGUMENTS: { readonly [name: string]: string | number } = { word: "épée 漢字 😀", limit: 3 };

export function probeQuestion(): Message {
  return { role: "user", content: "What does the word mean?\nBe brief — été, 漢字, 😀.", source: 0 };
}

/** A reply with one call. */
export function probeReply(renderer: Renderer): AssistantMessage {
  const id = renderer.callId({ name: PROBE_TOOL.name, priorCalls: 0, random: (digits) => "0".repeat(digits) });
  return {
    role: "assistant",
    content: "",
    reasoning: renderer.reasoningParser === null ? null : PROBE_REASONING,
    toolCalls: [{ id, name: PROBE_TOOL.name, arguments: JSON.stringify(PROBE_ARGUMENTS) }],
    form: "",
    source: 0,
  };
}

/** Texts that vocabularies split differently. */
export const PROBE_TEXTS: readonly string[] = [
  "Hello, world! It's 12,345.67 — naïve façade.\r\n\tEND\n\n\n",
  "漢字かな交じり文。한국어 русский العربية עברית हिन्दी ไทย",
  "👩‍👩‍👧 🇩🇪 👍🏽 e\u0301 \u200b\u00a0\u3000 ﬁ ſ K",
  'def f(x):\n    return {"a": [x, None]}  # 1e-5\n',
  `${" ".repeat(70)}x${"=".repeat(70)}`,
];
