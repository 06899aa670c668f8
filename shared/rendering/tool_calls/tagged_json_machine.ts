/** Reads calls that are one JSON value between markers, alone or in a section (rule 7). It knows the formats as data only. */

import { CallBlock, type MachineContext } from "./call_block.ts";
import { SectionReader, type Wrapper } from "./call_section.ts";
import { argumentsOf, type CallKeys, callOfJson } from "./json_call.ts";
import { JsonScanner } from "./json_scanner.ts";
import { escapePattern, MarkerSet } from "./marker_set.ts";
import type { ReadCall } from "./message_sink.ts";
import { accept, hasMore, peek, readUntil, seek, skipSpace } from "./reading.ts";
import type { Step, TextCursor } from "./text_cursor.ts";
import type { BlockReader } from "./tool_call_format.ts";

/** What is between a start marker and the JSON value: the name. */
export interface CallHead {
  /** Where the head ends: the first of these characters (a global pattern of one). */
  readonly stop: RegExp;
  /** The name is this pattern's first group. */
  readonly pattern: RegExp;
  /** Literals that may follow, in this order, white space aside; `required` ones must. */
  readonly then: readonly { readonly literal: string; readonly required: boolean }[];
}

/** A format of this kind. */
export interface TaggedJsonSyntax {
  readonly wrapper: Wrapper | null;
  /** Each way a call may begin: literals in a row, white space aside. */
  readonly starts: readonly (readonly [string, ...string[]])[];
  readonly end: string;
  /** Without a head the JSON value is the whole call; with one it is the argument object. */
  readonly head: CallHead | null;
  readonly keys: CallKeys;
  /** Literals that may come between the value and the end marker, white space aside. */
  readonly beforeEnd?: readonly string[];
}

/** Reads the calls of one completion. */
export class TaggedJsonReader implements BlockReader {
  readonly starts: readonly string[];
  readonly #context: MachineContext;
  readonly #syntax: TaggedJsonSyntax;
  readonly #section: SectionReader;
  /** What may follow a whole value beside the end marker. */
  readonly #followers: readonly string[];
  /** Where a malformed call ends. */
  readonly #bounds: MarkerSet;
  readonly #ending: RegExp;

  constructor(context: MachineContext, syntax: TaggedJsonSyntax) {
    this.#context = context;
    this.#syntax = syntax;
    const callStarts = syntax.starts.map(([first]) => first);
    const wrapper = syntax.wrapper;
    this.starts = wrapper === null ? callStarts : [wrapper.start, ...callStarts];
    this.#followers = wrapper === null ? this.starts : [...this.starts, wrapper.end];
    this.#bounds = new MarkerSet([...this.#followers, syntax.end]);
    this.#ending = new RegExp(
      `${escapePattern(syntax.end)}\\s*(?:$|${this.#followers.map(escapePattern).join("|")})`,
    );
    this.#section = new SectionReader(context, { wrapper, callStarts }, (block, start) => this.#readCall(block, start));
  }

  *readBlock(start: string): Step<void> {
    const block = new CallBlock(this.#context);
    this.#context.cursor.position += start.length;
    yield* this.#section.read(block, start);
  }

  *#readCall(block: CallBlock, start: string): Step<void> {
    const { cursor } = this.#context;
    const from = cursor.offset;
    const [, ...moreStart] = this.#syntax.starts.find(([first]) => first === start) ?? [start];
    if (!(yield* acceptAll(cursor, moreStart))) return yield* this.#endBad(block);
    let name: string | null = null;
    if (this.#syntax.head !== null) {
      name = yield* readHead(cursor, this.#syntax.head);
      if (name === null) return yield* this.#endBad(block);
    }
    yield* skipSpace(cursor);
    const isEmpty = name !== null &&
      (yield* peek(cursor, [...(this.#syntax.beforeEnd ?? []), this.#syntax.end])) !== null;
    const scanner = new JsonScanner({ keepsMembers: name === null });
    if (!isEmpty) {
      const state = yield* scan(cursor, scanner);
      if (state === "more") return yield* this.#endCut(block, from);
      if (state === "error") {
        cursor.rewind(from);
        return yield* this.#endBad(block);
      }
    }
    const to = cursor.offset;
    for (const literal of this.#syntax.beforeEnd ?? []) {
      yield* skipSpace(cursor);
      yield* accept(cursor, [literal]);
    }
    yield* skipSpace(cursor);
    const isClosed = (yield* accept(cursor, [this.#syntax.end])) !== null;
    if (!isClosed && (yield* hasMore(cursor)) && (yield* peek(cursor, this.#followers)) === null) {
      return yield* this.#endBad(block);
    }
    const call = isEmpty ? { name: name ?? "", arguments: "{}" } : this.#callOf(name, scanner, to);
    if (call === null) block.text("malformed");
    else block.call(call);
  }

  #callOf(name: string | null, scanner: JsonScanner, to: number): ReadCall | null {
    const { cursor } = this.#context;
    if (name === null) return callOfJson(cursor, scanner, this.#syntax.keys);
    const value = argumentsOf(cursor.slice(scanner.from, to));
    return value === null ? null : { name, arguments: value };
  }

  /** A bad call goes on to its end marker, or to where another one begins. */
  *#endBad(block: CallBlock): Step<void> {
    const { cursor } = this.#context;
    const bound = yield* seek(cursor, this.#bounds);
    if (bound === this.#syntax.end) cursor.position += bound.length;
    block.text(bound === null ? "truncated" : "malformed");
  }

  /** The text ended within the value: cut off, unless an end marker that lies in it as data is the call's own. */
  *#endCut(block: CallBlock, from: number): Step<void> {
    const { cursor } = this.#context;
    const ending = this.#ending.exec(cursor.slice(from, cursor.offset));
    if (ending === null) {
      block.text("truncated");
      return;
    }
    cursor.rewind(from);
    yield* this.#endBad(block);
  }
}

/** Reads literals in a row, white space aside. */
export function* acceptAll(cursor: TextCursor, literals: readonly string[]): Step<boolean> {
  for (const literal of literals) {
    yield* skipSpace(cursor);
    if ((yield* accept(cursor, [literal])) === null) return false;
  }
  return true;
}

/** Scans one JSON value; `more` if the text ends in it. */
export function* scan(cursor: TextCursor, scanner: JsonScanner): Step<"done" | "error" | "more"> {
  for (;;) {
    const state = scanner.advance(cursor);
    if (state !== "more" || cursor.ended) return state;
    yield;
  }
}

function* readHead(cursor: TextCursor, head: CallHead): Step<string | null> {
  const text = yield* readUntil(cursor, head.stop);
  if (text === null) return null;
  for (const { literal, required } of head.then) {
    yield* skipSpace(cursor);
    if ((yield* accept(cursor, [literal])) === null && required) return null;
  }
  return head.pattern.exec(text)?.[1] ?? null;
}
