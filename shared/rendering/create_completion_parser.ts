/** Puts a reasoning format and a tool-call format together into the parser of one completion. It knows no format's inside. */

import type { ToolDefinition } from "../core/message.ts";
import { VerbatimError } from "../core/errors.ts";
import type { CompletionParser, ParsedCompletion, ParseDelta } from "../ports/completion_parser.ts";
import type { ReasoningFormat } from "./reasoning/reasoning_format.ts";
import { REASONING_PARSERS, reasoningFormat } from "./reasoning/reasoning_parsers.ts";
import { readTagReasoning } from "./reasoning/tag_machine.ts";
import type { MachineContext } from "./tool_calls/call_block.ts";
import { readChannels } from "./tool_calls/channel_machine.ts";
import { readContent } from "./tool_calls/content_machine.ts";
import { type Accounting, MessageSink } from "./tool_calls/message_sink.ts";
import { StopTokenFilter } from "./tool_calls/stop_token_filter.ts";
import { type Step, TextCursor } from "./tool_calls/text_cursor.ts";
import type { ToolCallFormat } from "./tool_calls/tool_call_format.ts";
import { TOOL_CALL_PARSERS, toolCallFormat } from "./tool_calls/tool_call_parsers.ts";
import { ToolTable } from "./tool_calls/tool_table.ts";

export { isToolCallParser, TOOL_CALL_PARSERS } from "./tool_calls/tool_call_parsers.ts";
export { isReasoningParser, REASONING_PARSERS } from "./reasoning/reasoning_parsers.ts";

/** What a completion is parsed with. */
export interface CompletionParserOptions {
  /** SGLang's name of the tool-call format; null: calls are not read. */
  readonly toolCallParser: string | null;
  /** SGLang's name of the reasoning format; null: reasoning is not split off. */
  readonly reasoningParser: string | null;
  /** The request's tools; with none, call markup is text. */
  readonly tools: readonly ToolDefinition[];
  /** The request's choice; with `none`, call markup is text. */
  readonly toolChoice: "auto" | "none" | "required" | { readonly name: string };
  /** Whether the rendered prompt ends within a reasoning block. */
  readonly opensReasoning: boolean;
}

/** A parser that also tells what it did with its input; for tests. */
export interface AccountedParser extends CompletionParser {
  /** Where the characters of the input went. */
  readonly accounting: Accounting;
  /** Characters looked at, repeats included. */
  readonly work: number;
}

/** Makes the parser of one completion. Throws `invalid_request` for a parser name that does not exist. */
export function createCompletionParser(options: CompletionParserOptions): AccountedParser {
  const { toolCallParser, reasoningParser } = options;
  const format = toolCallParser === null ? null : toolCallFormat(toolCallParser);
  if (toolCallParser !== null && format === null) throw unknownParser("tool-call", toolCallParser, TOOL_CALL_PARSERS);
  const reasoning = reasoningParser === null ? null : reasoningFormat(reasoningParser);
  if (reasoningParser !== null && reasoning === null) {
    throw unknownParser("reasoning", reasoningParser, REASONING_PARSERS);
  }
  return new Parser(format, reasoning, options);
}

function unknownParser(kind: string, name: string, names: readonly string[]): VerbatimError {
  return new VerbatimError(
    "invalid_request",
    `There is no ${kind} parser ${JSON.stringify(name)}; there are ${names.join(", ")}.`,
  );
}

class Parser implements AccountedParser {
  readonly #cursor = new TextCursor();
  readonly #sink = new MessageSink();
  readonly #stopTokens: StopTokenFilter;
  readonly #machine: Step<void>;
  #isDone = false;

  constructor(format: ToolCallFormat | null, reasoning: ReasoningFormat | null, options: CompletionParserOptions) {
    const context = { cursor: this.#cursor, sink: this.#sink, tools: new ToolTable(options.tools) };
    this.#stopTokens = new StopTokenFilter([...(format?.stopTokens ?? []), ...(reasoning?.stopTokens ?? [])]);
    this.#machine = readCompletion(context, format, reasoning, options);
  }

  get accounting(): Accounting {
    return this.#sink.accounting;
  }

  get work(): number {
    return this.#cursor.work;
  }

  push(text: string): ParseDelta[] {
    const certain = this.#stopTokens.push(text);
    if (certain.length === 0) return [];
    this.#cursor.feed(certain);
    this.#run();
    return this.#sink.take();
  }

  finish(): ParseDelta[] {
    const { text, stopToken } = this.#stopTokens.finish();
    this.#cursor.feed(text);
    this.#cursor.ended = true;
    this.#run();
    this.#sink.framing(stopToken.length);
    this.#sink.end();
    return this.#sink.take();
  }

  result(): ParsedCompletion {
    return this.#sink.result();
  }

  reasoningSpans(): readonly (readonly [start: number, end: number])[] {
    return this.#sink.reasoningSpans;
  }

  #run(): void {
    if (!this.#isDone) this.#isDone = this.#machine.next().done === true;
  }
}

function* readCompletion(
  context: MachineContext,
  format: ToolCallFormat | null,
  reasoning: ReasoningFormat | null,
  options: CompletionParserOptions,
): Step<void> {
  const { opensReasoning } = options;
  const readsCalls = format !== null && options.tools.length > 0 && options.toolChoice !== "none";
  const machine = format?.machine ?? null;
  const reader = readsCalls && machine?.type === "blocks" ? machine.reader(context) : null;
  const channels = machine?.type === "channels" ? machine.channels : null;
  const syntax = reasoning?.syntax ?? null;
  if (syntax?.type === "channels") {
    const isOwn = readsCalls && channels === syntax.channels;
    const channelOptions = { readsReasoning: true, readsCalls: isOwn, opensReasoning, inner: reader };
    yield* readChannels(context, syntax.channels, channelOptions);
    return;
  }
  let strayEnds: readonly string[] = [];
  if (syntax?.type === "append") {
    if (opensReasoning) context.sink.inject(syntax.start);
  } else if (syntax !== null) {
    const callStarts = reader?.starts ?? (readsCalls ? channels?.headerStarts : undefined) ?? [];
    const end = yield* readTagReasoning(context, syntax, { isOpen: opensReasoning, callStarts });
    if (end === "text_ended") return;
    if (end === "interrupted") strayEnds = syntax.ends;
  }
  if (channels !== null) {
    const channelOptions = { readsReasoning: false, readsCalls, opensReasoning: false, inner: null };
    yield* readChannels(context, channels, channelOptions);
    return;
  }
  const framing = [...(format?.framing ?? []), ...(reasoning?.framing ?? [])];
  yield* readContent(context, { reader, framing, strayEnds });
}
