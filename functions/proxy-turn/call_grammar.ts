/**
 * Grammars in the engine's words: a JSON schema, or a structural tag (XGrammar's format) where calls or reasoning stand
 * beside it. Only for call formats whose markup is fixed text around JSON; for any other there is none.
 */

import type { Json, ToolDefinition } from "../../shared/core/message.ts";
import type { Renderer } from "../../shared/ports/renderer.ts";

/** One of the engine's grammars. */
export type Grammar = { readonly json_schema: string } | { readonly structural_tag: string };

/** Calls that come, one at least. */
export interface Calls {
  readonly tools: readonly ToolDefinition[];
  /** False: one at most. */
  readonly parallel: boolean;
}

type Format = { [key: string]: Json };

/** Text around the arguments of a call, by tool-call parser, and between two calls. */
const CALL_MARKUP: ReadonlyMap<string, { begin: (name: string) => string; end: string; separator: string }> = new Map(
  ["qwen", "qwen25", "hermes", "trinity"].map((parser) => [parser, {
    begin: (name: string) => `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `,
    end: "}\n</tool_call>",
    separator: "\n",
  }]),
);

/** The end of a reasoning block that the prompt opened, by reasoning parser; models write white space after it. */
const REASONING_END: ReadonlyMap<string, string> = new Map(
  ["qwen3", "qwen3-thinking", "deepseek-r1"].map((parser) => [parser, "</think>"]),
);
const AFTER_REASONING = ["\n\n", "\n", ""];

/** A grammar under which nothing but calls comes (after reasoning that the prompt opened); null where there is none. */
export function callGrammar(
  request: Calls & { readonly opensReasoning: boolean },
  renderer: Renderer,
): Grammar | null {
  const calls = callsFormat(request, renderer.toolCallParser);
  return calls === null ? null : structuralTag(calls, request.opensReasoning, renderer.reasoningParser);
}

/** A grammar under which the text follows a schema, or calls come instead where there may be calls; null where there is none. */
export function answerGrammar(
  request: { readonly schema: Json; readonly calls: Calls | null; readonly opensReasoning: boolean },
  renderer: Renderer,
): Grammar | null {
  const { schema, calls, opensReasoning } = request;
  if (calls === null && !opensReasoning) return { json_schema: JSON.stringify(schema) };
  const text: Format = { type: "json_schema", json_schema: schema };
  if (calls === null) return structuralTag(text, opensReasoning, renderer.reasoningParser);
  const called = callsFormat(calls, renderer.toolCallParser);
  if (called === null) return null;
  return structuralTag({ type: "or", elements: [text, called] }, opensReasoning, renderer.reasoningParser);
}

function callsFormat({ tools, parallel }: Calls, toolCallParser: string | null): Format | null {
  const markup = CALL_MARKUP.get(toolCallParser ?? "");
  if (markup === undefined) return null;
  return {
    type: "tags_with_separator",
    tags: tools.map((tool) => ({
      type: "tag",
      begin: markup.begin(tool.name),
      content: { type: "json_schema", json_schema: tool.parameters ?? { type: "object" } },
      end: markup.end,
    })),
    separator: markup.separator,
    at_least_one: true,
    stop_after_first: !parallel,
  };
}

function structuralTag(format: Format, opensReasoning: boolean, reasoningParser: string | null): Grammar | null {
  if (!opensReasoning) return { structural_tag: JSON.stringify({ type: "structural_tag", format }) };
  const end = REASONING_END.get(reasoningParser ?? "");
  if (end === undefined) return null;
  const reasoning: Format = { type: "tag", begin: "", content: { type: "any_text" }, end };
  const space: Format = {
    type: "or",
    elements: AFTER_REASONING.map((value) => ({ type: "const_string", value })),
  };
  const whole: Format = { type: "sequence", elements: [reasoning, space, format] };
  return { structural_tag: JSON.stringify({ type: "structural_tag", format: whole }) };
}
