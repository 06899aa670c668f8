/** Parses a completion that was sampled anywhere, with the machines that read our own. */

import { checkedIds } from "../core/checked_ids.ts";
import { VerbatimError } from "../core/errors.ts";
import type { Conversation } from "../core/message.ts";
import type { ParsedCompletion } from "../ports/completion_parser.ts";
import type { ParserRequest, Renderer } from "../ports/renderer.ts";
import { createCompletionParser } from "../rendering/create_completion_parser.ts";
import { isReasoningParser, REASONING_PARSERS } from "../rendering/reasoning/mod.ts";
import { isToolCallParser, TOOL_CALL_PARSERS } from "../rendering/tool_calls/mod.ts";

/** What is parsed, and how. A parser of null means none, undefined the renderer's own. */
export interface ParseTextRequest {
  readonly input: { readonly text: string } | { readonly tokens: readonly number[] };
  readonly tools: Conversation["tools"];
  readonly toolChoice: ParserRequest["toolChoice"];
  readonly toolCallParser: string | null | undefined;
  readonly reasoningParser: string | null | undefined;
  readonly opensReasoning: boolean;
  /** Ascending split points: UTF-16 offsets of a text, indexes of tokens. The pieces are parsed as a stream. */
  readonly splits: readonly number[];
}

/** Parses. Unknown parser names are `invalid_request` with the list of those there are. */
export function parseText(request: ParseTextRequest, renderer: Renderer): ParsedCompletion {
  const toolCallParser = request.toolCallParser === undefined ? renderer.toolCallParser : request.toolCallParser;
  const reasoningParser = request.reasoningParser === undefined ? renderer.reasoningParser : request.reasoningParser;
  if (toolCallParser !== null && !isToolCallParser(toolCallParser)) {
    throw unknownParser("tool_call_parser", toolCallParser, TOOL_CALL_PARSERS);
  }
  if (reasoningParser !== null && !isReasoningParser(reasoningParser)) {
    throw unknownParser("reasoning_parser", reasoningParser, REASONING_PARSERS);
  }
  const parser = createCompletionParser({
    toolCallParser,
    reasoningParser,
    tools: request.tools,
    toolChoice: request.toolChoice,
    opensReasoning: request.opensReasoning,
  });
  for (const piece of piecesOf(request, renderer)) parser.push(piece);
  parser.finish();
  return parser.result();
}

function piecesOf(request: ParseTextRequest, renderer: Renderer): string[] {
  if ("text" in request.input) {
    const { text } = request.input;
    return between(request.splits, text.length, (from, to) => text.slice(from, to));
  }
  const { tokenizer } = renderer;
  const ids = checkedIds(request.input.tokens, tokenizer.vocabSize, "tokens");
  // The final stop token is no text; the parsers drop it where it is spelled out, here it is known by its id.
  const last = ids[ids.length - 1];
  const end = last !== undefined && renderer.stopTokenIds.includes(last) ? ids.length - 1 : ids.length;
  const decoder = tokenizer.decoder();
  const pieces = between(request.splits, end, (from, to) => {
    let text = "";
    for (const id of ids.subarray(from, to)) text += decoder.push(id);
    return text;
  });
  return [...pieces, decoder.finish()];
}

function between(splits: readonly number[], length: number, piece: (from: number, to: number) => string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (const split of [...splits, length]) {
    const to = Math.min(split, length);
    pieces.push(piece(from, to));
    from = to;
  }
  return pieces;
}

function unknownParser(field: string, name: string, names: readonly string[]): VerbatimError {
  const reason = `there is no "${name}"; there are ${names.join(", ")}`;
  return new VerbatimError("invalid_request", `Field "${field}": ${reason}`, { details: { field, reason } });
}
