/** Reads the value that a call consists of, and how the call ends after it. What surrounds the call is not its affair. */

import type { CallBlock, MachineContext, TextStatus } from "./call_block.ts";
import { argumentsOf, type CallKeys, callOfJson } from "./json_call.ts";
import { JsonScanner, type ScanState } from "./json_scanner.ts";
import { escapePattern, MarkerSet } from "./marker_set.ts";
import type { ReadCall } from "./message_sink.ts";
import { accept, hasMore, peek, seek, skipSpace } from "./reading.ts";
import type { Step, TextCursor } from "./text_cursor.ts";

/** Finds the end of a value in a text that is still coming. */
export interface ValueScanner {
  advance(cursor: TextCursor): ScanState;
}

/** A value that states a call, or the arguments of a call whose name is known. */
export interface CallValue {
  /** Whether the name stands before the value; a missing value then means no arguments. */
  readonly hasName: boolean;
  /** Begins the scan of a value at the cursor; what it returns gives the call once the value is whole. */
  begin(cursor: TextCursor): { scanner: ValueScanner; call: (to: number, name: string) => ReadCall | null };
}

/** A JSON object that states name and arguments. A name that is known already is used where the object states none. */
export function jsonCall(keys: CallKeys): CallValue {
  return {
    hasName: false,
    begin(cursor) {
      const scanner = new JsonScanner({ keepsMembers: true });
      return { scanner, call: (_to, name) => callOfJson(cursor, scanner, keys, name) };
    },
  };
}

/** A JSON object that is the arguments, or a JSON string that holds one. */
export const JSON_ARGUMENTS: CallValue = {
  hasName: true,
  begin(cursor) {
    const from = cursor.offset;
    const scanner = new JsonScanner({ keepsMembers: false });
    return {
      scanner,
      call(to, name) {
        const value = argumentsOf(cursor.slice(from, to));
        return value === null ? null : { name, arguments: value };
      },
    };
  },
};

/** What a call's value is and what comes after it. */
export interface BodySyntax {
  readonly value: CallValue;
  /** The end markers; one of them closes the call. */
  readonly ends: readonly string[];
  /** Markers that show that the call is over where its end marker is missing. */
  readonly followers: readonly string[];
  /** Literals that may come between the value and the end marker, white space aside. */
  readonly beforeEnd?: readonly string[];
}

/** Scans one value; `more` if the text ends in it. */
export function* scanValue(cursor: TextCursor, scanner: ValueScanner): Step<ScanState> {
  for (;;) {
    const state = scanner.advance(cursor);
    if (state !== "more" || cursor.ended) return state;
    yield;
  }
}

/** Reads the bodies of one format's calls. */
export class CallBodyReader {
  readonly #context: MachineContext;
  readonly #syntax: BodySyntax;
  readonly #ends: ReadonlySet<string>;
  /** Where a malformed call ends. */
  readonly #bounds: MarkerSet;
  readonly #ending: RegExp;

  constructor(context: MachineContext, syntax: BodySyntax) {
    this.#context = context;
    this.#syntax = syntax;
    this.#ends = new Set(syntax.ends);
    this.#bounds = MarkerSet.of([...syntax.ends, ...syntax.followers]);
    const ends = syntax.ends.map(escapePattern).join("|");
    this.#ending = new RegExp(`(?:${ends})\\s*(?:${["$", ...syntax.followers.map(escapePattern)].join("|")})`);
  }

  /** Reads the value and the end. `from` is where the call's text begins behind its start marker. */
  *read(block: CallBlock, from: number, name: string): Step<void> {
    const { cursor } = this.#context;
    const { value, ends, followers, beforeEnd = [] } = this.#syntax;
    yield* skipSpace(cursor);
    const isEmpty = value.hasName && (yield* peek(cursor, [...beforeEnd, ...ends])) !== null;
    const { scanner, call } = value.begin(cursor);
    const state = isEmpty ? "done" : yield* scanValue(cursor, scanner);
    if (state === "more") return yield* this.#endCut(block, from);
    if (state === "error") {
      // Where the JSON is broken its strings mean nothing: markers in them are markers.
      cursor.rewind(from);
      return yield* this.endBad(block);
    }
    const to = cursor.offset;
    for (const literal of beforeEnd) {
      yield* skipSpace(cursor);
      yield* accept(cursor, [literal]);
    }
    yield* skipSpace(cursor);
    const isClosed = (yield* accept(cursor, ends)) !== null;
    if (!isClosed && (yield* hasMore(cursor)) && (yield* peek(cursor, followers)) === null) {
      return yield* this.endBad(block);
    }
    const read = isEmpty ? { name, arguments: "{}" } : call(to, name);
    if (read === null) block.text("malformed");
    else block.call(read);
  }

  /** Reads the value and the end of a call that is a block of its own; returns what the block is where it is no call. */
  *readAlone(block: CallBlock, from: number, name: string): Step<TextStatus> {
    yield* this.read(block, from, name);
    return "malformed";
  }

  /** A bad call goes on to its end marker, or to where another one begins. */
  *endBad(block: CallBlock): Step<void> {
    const { cursor } = this.#context;
    const bound = yield* seek(cursor, this.#bounds);
    if (bound !== null && this.#ends.has(bound)) cursor.position += bound.length;
    block.text(bound === null ? "truncated" : "malformed");
  }

  /** The text ended within the value: cut off, unless an end marker that lies in it as data is the call's own. */
  *#endCut(block: CallBlock, from: number): Step<void> {
    const { cursor } = this.#context;
    if (!this.#ending.test(cursor.slice(from, cursor.offset))) return block.text("truncated");
    cursor.rewind(from);
    yield* this.endBad(block);
  }
}
