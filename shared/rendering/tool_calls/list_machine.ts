/**
 * Reads calls that stand in a list between brackets, or one after the other behind one marker: JSON objects or Python calls.
 * It knows the formats as data only.
 */

import { CallBlock, type MachineContext, type TextStatus } from "./call_block.ts";
import { JSON_ARGUMENTS, scanValue, type ValueScanner } from "./call_body.ts";
import { type CallKeys, callOfJson, type NamedKeys, seemsCall } from "./json_call.ts";
import { JsonScanner } from "./json_scanner.ts";
import { skipElement } from "./list_element.ts";
import { escapePattern, MarkerSet } from "./marker_set.ts";
import type { ReadCall } from "./message_sink.ts";
import { parsePythonCall, PythonCallScanner } from "./python_call.ts";
import { accept, hasMore, peek, seek, skipSpace } from "./reading.ts";
import { type CallHead, readHead } from "./tagged_machine.ts";
import type { Step } from "./text_cursor.ts";
import type { BlockReader } from "./tool_call_format.ts";

/** A format of this kind. */
export interface ListSyntax {
  readonly starts: readonly string[];
  readonly end: string | null;
  /** The keys of a call that is a JSON object. */
  readonly keys: CallKeys;
  /** Calls may be written as in Python. */
  readonly python?: true;
  /** What separates calls that stand in no list. */
  readonly separator?: string;
  /** A call may be a name and the argument object behind the marker. */
  readonly head?: CallHead;
}

interface ElementOptions {
  readonly place: "list" | "sequence";
  /** The keys that tell a call from an answer in JSON, where that is not certain. */
  readonly bareKeys?: NamedKeys;
}

interface BegunElement {
  readonly scanner: ValueScanner;
  /** The call that the element is, once whole. */
  readonly call: () => ReadCall | null;
  /** Whether the element, broken or cut off, was going to be a call. */
  readonly seems: () => boolean;
}

/** How an element ended: whole, broken, or with the text. */
type ElementEnd = "whole" | "broken" | "cut";

/** Reads the calls of one completion. */
export class ListReader implements BlockReader {
  readonly starts: readonly string[];
  readonly #context: MachineContext;
  readonly #syntax: ListSyntax;
  readonly #stops: readonly string[];
  readonly #bounds: MarkerSet;
  /** What shows, within a value that the text ended in, that the value was over before. */
  readonly #ending: RegExp;

  constructor(context: MachineContext, syntax: ListSyntax) {
    this.#context = context;
    this.#syntax = syntax;
    this.starts = syntax.starts;
    this.#stops = syntax.end === null ? syntax.starts : [syntax.end, ...syntax.starts];
    this.#bounds = MarkerSet.of(this.#stops);
    const starts = syntax.starts.map(escapePattern).join("|");
    this.#ending = new RegExp(
      syntax.end === null ? `[}\\]]\\s*(?:${starts})` : `${escapePattern(syntax.end)}\\s*(?:$|${starts})`,
    );
  }

  *readBlock(start: string): Step<void> {
    const { cursor } = this.#context;
    const { head, python } = this.#syntax;
    const block = new CallBlock(this.#context);
    cursor.position += start.length;
    block.markup();
    yield* skipSpace(cursor);
    // A start marker may itself begin with a bracket.
    const next = yield* peek(cursor, [...this.#stops, "[", "{"]);
    let isComplete = false;
    if (next === "[") {
      cursor.position++;
      isComplete = yield* this.readList(block);
    } else if (next === "{") {
      yield* this.#readSequence(block, { place: "sequence" });
    } else if (next === null && head !== undefined) {
      yield* this.#readHeaded(block, head);
    } else if (next === null && python && (yield* hasMore(cursor))) {
      yield* this.#readSequence(block, { place: "sequence" });
    }
    yield* this.#endBlock(block, isComplete);
  }

  /** Reads the elements of a list behind its opening bracket; true if it is closed. */
  *readList(block: CallBlock): Step<boolean> {
    const { cursor } = this.#context;
    for (;;) {
      yield* skipSpace(cursor);
      block.markup();
      const next = yield* peek(cursor, [...this.#stops, "]"]);
      if (next === "]") {
        cursor.position++;
        block.markup();
        return true;
      }
      if (next !== null || cursor.atEnd) return false;
      if (!(yield* this.#readElement(block, { place: "list" }))) return false;
      yield* skipSpace(cursor);
      if ((yield* accept(cursor, [","])) === null) continue;
      yield* skipSpace(cursor);
      block.markup();
      // A list that ends with a comma was going on.
      if (cursor.atEnd) block.text("truncated");
    }
  }

  /** Reads objects one after the other that may be calls or an answer in JSON: `bareKeys` tell them apart. */
  *readBare(block: CallBlock, bareKeys: NamedKeys): Step<void> {
    yield* this.#readSequence(block, { place: "sequence", bareKeys });
  }

  /** Reads calls one after the other, as long as another follows. */
  *#readSequence(block: CallBlock, options: ElementOptions): Step<void> {
    const { cursor } = this.#context;
    const { separator } = this.#syntax;
    for (;;) {
      const isWhole = yield* this.#readElement(block, options);
      if (!isWhole || separator === undefined || !block.hasCall) return;
      yield* skipSpace(cursor);
      const hasSeparator = (yield* accept(cursor, [separator])) !== null;
      if (hasSeparator) yield* skipSpace(cursor);
      const goesOn = (yield* peek(cursor, ["{"])) !== null;
      if (hasSeparator && !goesOn && !cursor.atEnd) block.text("nothing");
      else block.markup();
      if (!goesOn) return;
    }
  }

  /** Reads one element; false where the text ended in it. */
  *#readElement(block: CallBlock, options: ElementOptions): Step<boolean> {
    const { cursor } = this.#context;
    const { place, bareKeys } = options;
    const from = cursor.offset;
    const { scanner, call, seems } = this.#beginElement(bareKeys, (yield* peek(cursor, ["{"])) !== null);
    const end = yield* this.#scanElement(scanner, place);
    if (end === "whole") {
      const read = call();
      if (read !== null) block.call(read);
      else block.text(bareKeys === undefined ? "malformed" : "nothing");
      return true;
    }
    if (!seems()) {
      if (bareKeys !== undefined) yield* this.#readBareDictionary(block, from, bareKeys);
      block.text("nothing");
      return false;
    }
    if (end === "cut" && !this.#ending.test(cursor.slice(from, cursor.offset))) {
      block.text("truncated");
      return false;
    }
    cursor.rewind(from);
    return yield* this.#skipBroken(block, place);
  }

  /** A bare Python dictionary with the keys of a call is a malformed call; with other keys it is an answer. */
  *#readBareDictionary(block: CallBlock, from: number, bareKeys: NamedKeys): Step<void> {
    const { cursor } = this.#context;
    if ((yield* peek(cursor, bareKeys.name.map((key) => `'${key}'`))) === null) return;
    cursor.rewind(from);
    const isBounded = yield* skipElement(cursor, { stops: this.#stops, place: "sequence", hasSingleQuotes: true });
    const text = cursor.slice(from, cursor.offset);
    if (bareKeys.arguments.some((key) => text.includes(`'${key}'`))) block.text(isBounded ? "malformed" : "truncated");
  }

  *#skipBroken(block: CallBlock, place: "list" | "sequence"): Step<boolean> {
    const hasSingleQuotes = this.#syntax.python === true;
    const isBounded = yield* skipElement(this.#context.cursor, { stops: this.#stops, place, hasSingleQuotes });
    block.text(isBounded ? "malformed" : "truncated");
    return isBounded;
  }

  *#scanElement(scanner: ValueScanner, place: "list" | "sequence"): Step<ElementEnd> {
    const { cursor } = this.#context;
    const state = yield* scanValue(cursor, scanner);
    if (state !== "done") return state === "error" ? "broken" : "cut";
    if (place === "sequence") return "whole";
    const to = cursor.offset;
    yield* skipSpace(cursor);
    const isFollowed = !(yield* hasMore(cursor)) || (yield* peek(cursor, [...this.#stops, ",", "]"])) !== null;
    cursor.rewind(to);
    return isFollowed ? "whole" : "broken";
  }

  #beginElement(bareKeys: NamedKeys | undefined, isJson: boolean): BegunElement {
    const { cursor } = this.#context;
    if (this.#syntax.python && !isJson) {
      const from = cursor.offset;
      const call = (): ReadCall | null => parsePythonCall(cursor.slice(from, cursor.offset));
      return { scanner: new PythonCallScanner(), call, seems: () => true };
    }
    const scanner = new JsonScanner({ keepsMembers: true });
    return {
      scanner,
      call: () => callOfJson(cursor, scanner, bareKeys ?? this.#syntax.keys, ""),
      seems: () => bareKeys === undefined || seemsCall(cursor, scanner, bareKeys),
    };
  }

  *#readHeaded(block: CallBlock, head: CallHead): Step<void> {
    const { cursor } = this.#context;
    const headFrom = cursor.offset;
    const name = yield* readHead(cursor, head);
    yield* skipSpace(cursor);
    if (name === null || (yield* peek(cursor, ["{", '"'])) === null) {
      if (cursor.atEnd) return block.text("truncated");
      // What follows is no call: it is read again as part of the answer.
      cursor.rewind(headFrom);
      return block.text("malformed");
    }
    const from = cursor.offset;
    const { scanner, call } = JSON_ARGUMENTS.begin(cursor);
    const state = yield* scanValue(cursor, scanner);
    const isCut = state === "more" && !this.#ending.test(cursor.slice(from, cursor.offset));
    if (isCut) return block.text("truncated");
    if (state !== "done") {
      cursor.rewind(from);
      yield* this.#skipBroken(block, "sequence");
      return;
    }
    const read = call(cursor.offset, name);
    if (read === null) block.text("malformed");
    else block.call(read);
  }

  /** What is left up to the end marker, where the format has one. Without a good call all of it belongs to the bad block. */
  *#endBlock(block: CallBlock, isComplete: boolean): Step<void> {
    const { cursor } = this.#context;
    const { end } = this.#syntax;
    let status: TextStatus = "malformed";
    if (end !== null) {
      yield* skipSpace(cursor);
      if (!block.hasCall && (yield* seek(cursor, this.#bounds)) === null) status = "truncated";
      yield* accept(cursor, [end]);
      block.markup();
    } else if (!isComplete && !(yield* hasMore(cursor))) {
      status = "truncated";
    }
    if (!block.hasCall && block.hasBad) status = "nothing";
    block.close(status);
  }
}
