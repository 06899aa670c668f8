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

/** Tools that a model here can call, and the fields of those it can't: they are not offered. */
export interface OfferedTools {
  /** The functions. */
  readonly tools: ToolDefinition[];
  /** Fields of what is no function, `tools.3`. */
  readonly ignoredFields: string[];
}

/** Kinds of tools that coding agents offer beside their functions, whatever the model: they can do without. */
const DISPENSABLE =
  /^(?:web_search|web_search_preview)(?:_\d{4}_\d{2}_\d{2})?$|^(?:custom|image_generation|local_shell|namespace|tool_search)$/;

/**
 * The tools of a Responses request. Of those that are no functions, what agents offer by habit is left out and named;
 * any other is `unsupported`: who asks for it needs it.
 */
export function readFunctionTools(tools: unknown): OfferedTools {
  return offered(tools, (tool, at) => {
    const { type, ...rest } = tool;
    if (type === "function") return definition(rest, at);
    if (typeof type === "string" && DISPENSABLE.test(type)) return null;
    throw unsupported(`${at}.type`, `only "function" is supported, not ${JSON.stringify(type)}`);
  });
}

/** Anthropic's tools. Those of a type of its own, which Anthropic's servers or clients define, are left out and named. */
export function readAnthropicTools(tools: unknown): OfferedTools {
  return offered(tools, (tool, at) => {
    if ((tool.type ?? "custom") !== "custom") return null;
    const { name, description, input_schema: parameters } = tool;
    return definition({
      name: name ?? null,
      ...(description === undefined ? {} : { description }),
      ...(parameters === undefined ? {} : { parameters }),
    }, at);
  });
}

function offered(
  written: unknown,
  read: (tool: { readonly [key: string]: Json }, field: string) => ToolDefinition | null,
): OfferedTools {
  const tools: ToolDefinition[] = [];
  const ignoredFields: string[] = [];
  for (const [k, item] of asList(written, "tools").entries()) {
    const at = `tools.${k}`;
    const tool = read(asJsonObject(asObject(item, at), at), at);
    if (tool === null) ignoredFields.push(at);
    else tools.push(tool);
  }
  return { tools, ignoredFields };
}

/** A tool from the members of its definition, in the order written. */
function definition(written: { readonly [key: string]: Json }, field: string): ToolDefinition {
  const { cache_control: _marker, ...raw } = written;
  const description = raw.description ?? null;
  return {
    name: asText(raw.name, `${field}.name`),
    ...(description === null ? {} : { description: asText(description, `${field}.description`) }),
    ...(raw.parameters === undefined || raw.parameters === null ? {} : { parameters: raw.parameters }),
    raw,
  };
}
