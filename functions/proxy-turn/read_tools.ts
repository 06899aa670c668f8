/** Tool definitions as the dialects write them, in canonical form. Cache markers are no part of a definition. */

import type { Json, ToolDefinition } from "../../shared/core/message.ts";
import { asJsonObject, asList, asObject, asText, unsupported } from "./read_json.ts";

/** OpenAI's tools: `{type: "function", function: {...}}`, or the same without the wrapping. Field names as in the request. */
export function readTools(tools: unknown, field = "tools"): ToolDefinition[] {
  return asList(tools, field).map((item, k) => {
    const at = `${field}.${k}`;
    const tool = asObject(item, at);
    const type = tool.type ?? "function";
    if (type !== "function") {
      throw unsupported(`${at}.type`, `only "function" is supported, not ${JSON.stringify(type)}`);
    }
    if (tool.function !== undefined) return definition(asJsonObject(tool.function, `${at}.function`), `${at}.function`);
    const { type: _type, ...rest } = asJsonObject(tool, at);
    return definition(rest, at);
  });
}

/** A tool from the members of its definition, in the order written. */
export function definition(written: { readonly [key: string]: Json }, field: string): ToolDefinition {
  const { cache_control: _marker, ...raw } = written;
  const description = raw.description ?? null;
  return {
    name: asText(raw.name, `${field}.name`),
    ...(description === null ? {} : { description: asText(description, `${field}.description`) }),
    ...(raw.parameters === undefined || raw.parameters === null ? {} : { parameters: raw.parameters }),
    raw,
  };
}
