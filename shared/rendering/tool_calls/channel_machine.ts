/**
 * Reads completions that are messages in channels: each has a header, and is reasoning, answer or call by what the header
 * says. It knows the formats as data only.
 */

import { CallBlock, type MachineContext } from "./call_block.ts";
import type { CallMessageReader, ChannelMessage, ChannelSyntax, HeaderPattern } from "./channel_syntax.ts";
import { MarkerSet } from "./marker_set.ts";
import { hasMore, peek, readUntil, seek, skipSpace } from "./reading.ts";
import type { Step } from "./text_cursor.ts";
import type { BlockReader } from "./tool_call_format.ts";

/** What is read of the messages. */
export interface ChannelOptions {
  /** Whether reasoning is told from the answer. */
  readonly readsReasoning: boolean;
  /** Whether call messages are calls; they are text otherwise. */
  readonly readsCalls: boolean;
  /** Whether the text begins within a reasoning message. */
  readonly opensReasoning: boolean;
  /** Reads blocks of calls within messages, where another format has them. */
  readonly inner: BlockReader | null;
}

/** Longest header, in characters; what is longer is text. */
const LONGEST_HEADER = 1024;

/** Reads to the end of the text. */
export function* readChannels(context: MachineContext, syntax: ChannelSyntax, options: ChannelOptions): Step<void> {
  const reader = new ChannelReader(context, syntax, options);
  yield* reader.read();
}

class ChannelReader {
  readonly #context: MachineContext;
  readonly #syntax: ChannelSyntax;
  readonly #options: ChannelOptions;
  readonly #calls: CallMessageReader | null;
  readonly #inner: BlockReader | null;
  readonly #bounds: MarkerSet;

  constructor(context: MachineContext, syntax: ChannelSyntax, options: ChannelOptions) {
    this.#context = context;
    this.#syntax = syntax;
    this.#options = options;
    this.#calls = options.readsCalls ? syntax.callReader(context) : null;
    this.#inner = this.#calls?.inner ?? options.inner;
    const { headerStarts, ends, framing } = syntax;
    this.#bounds = MarkerSet.of([...headerStarts, ...ends, ...framing, ...(this.#inner?.starts ?? [])]);
  }

  *read(): Step<void> {
    const { cursor } = this.#context;
    if (this.#options.opensReasoning && this.#options.readsReasoning) {
      yield* this.#readReasoning();
    } else if (this.#syntax.opening !== null) {
      yield* this.#readOpening(this.#syntax.opening);
    }
    while (yield* hasMore(cursor)) yield* this.#readText();
  }

  /** Reads text of the answer up to the end of its message, or to whatever else comes. */
  *#readText(): Step<void> {
    const { cursor, sink } = this.#context;
    const marker = yield* seek(cursor, this.#bounds, (text) => sink.content(text));
    if (marker !== null) yield* this.#readMarker(marker);
  }

  *#readMarker(marker: string): Step<void> {
    const { cursor, sink } = this.#context;
    if (this.#inner?.starts.includes(marker)) {
      yield* this.#inner.readBlock(marker);
    } else if (this.#syntax.headerStarts.includes(marker)) {
      yield* this.#readHeader(marker);
    } else {
      cursor.position += marker.length;
      const from = cursor.offset - marker.length;
      // Between messages white space is free.
      if (this.#syntax.ends.includes(marker)) yield* skipSpace(cursor);
      sink.framing(cursor.offset - from);
    }
  }

  *#readReasoning(): Step<void> {
    const { cursor, sink } = this.#context;
    const marker = yield* seek(cursor, this.#bounds, (text) => sink.reasoning(text));
    sink.endReasoning();
    if (marker === null) sink.report("truncated");
    else yield* this.#readMarker(marker);
  }

  /** Reads a header from its start marker on, and the message. What turns out to be no header is text. */
  *#readHeader(start: string): Step<void> {
    const { cursor, sink } = this.#context;
    const { headerEnds, headerParts, messageOf } = this.#syntax;
    const from = cursor.offset;
    cursor.keep(from);
    let marker: string | null = start;
    let length = 0;
    while (marker !== null && !headerEnds.includes(marker) && length < LONGEST_HEADER) {
      cursor.position += marker.length;
      const text: string | null = yield* readUntil(cursor, /</g);
      length += marker.length + (text?.length ?? LONGEST_HEADER);
      marker = text === null ? null : yield* peek(cursor, [...headerEnds, ...headerParts]);
    }
    if (marker !== null && headerEnds.includes(marker)) {
      const header = cursor.slice(from, cursor.offset);
      cursor.position += marker.length;
      yield* this.#readMessage(messageOf(header, marker), from);
      return;
    }
    const header = cursor.slice(from, cursor.offset);
    sink.content(header);
    if (this.#calls !== null && messageOf(header, "").type === "call") {
      sink.report(cursor.atEnd ? "truncated" : "malformed");
    }
    cursor.release();
  }

  /** The beginning of the text may be a header without its start. */
  *#readOpening(opening: HeaderPattern): Step<void> {
    const { cursor } = this.#context;
    const { headerEnds, messageOf } = this.#syntax;
    const markers = MarkerSet.of(headerEnds);
    const from = cursor.offset;
    for (;;) {
      const { window, position } = cursor;
      const found = markers.find(window, position);
      const header = window.slice(position, found?.index ?? markers.openEnd(window, position));
      if (found !== null && opening.whole.test(header)) {
        cursor.keep(from);
        cursor.position = found.index + found.literal.length;
        yield* this.#readMessage(messageOf(header, found.literal), from);
        return;
      }
      if (found !== null || cursor.ended || !opening.part.test(header)) return;
      yield;
    }
  }

  *#readMessage(message: ChannelMessage, from: number): Step<void> {
    const { cursor, sink } = this.#context;
    if (message.type === "call") {
      yield* this.#readCall(from, message.name);
      return;
    }
    sink.framing(cursor.offset - from);
    cursor.release();
    if (message.type === "reasoning" && this.#options.readsReasoning) yield* this.#readReasoning();
  }

  *#readCall(from: number, name: string): Step<void> {
    const { cursor, sink } = this.#context;
    if (this.#calls !== null) {
      const block = new CallBlock(this.#context, from);
      block.close(yield* this.#calls.readMessage(block, cursor.offset, name));
      return;
    }
    sink.content(cursor.slice(from, cursor.offset));
    cursor.release();
    const markers = MarkerSet.of([...this.#syntax.ends, ...this.#syntax.headerStarts]);
    const marker = yield* seek(cursor, markers, (text) => sink.content(text));
    if (marker === null || !this.#syntax.ends.includes(marker)) return;
    cursor.position += marker.length;
    sink.content(marker);
  }
}
