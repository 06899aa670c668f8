/** Reads calls that are one value between markers, alone or in a section (rule 7). It knows the formats as data only. */

import { CallBlock, type MachineContext } from "./call_block.ts";
import { CallBodyReader, type CallValue } from "./call_body.ts";
import { SectionReader, type Wrapper } from "./call_section.ts";
import { accept, acceptAll, readUntil, skipSpace } from "./reading.ts";
import type { Step, TextCursor } from "./text_cursor.ts";
import type { BlockReader } from "./tool_call_format.ts";

/** What is between a start marker and the value: the name. */
export interface CallHead {
  /** Where the name ends: the first of these characters (a global pattern of one). */
  readonly stop: RegExp;
  /** The name is this pattern's first group. */
  readonly pattern: RegExp;
  /** Literals that may follow, in this order, white space aside; `required` ones must. */
  readonly then: readonly { readonly literal: string; readonly required: boolean }[];
}

/** A format of this kind. */
export interface TaggedSyntax {
  readonly wrapper: Wrapper | null;
  /** How a call begins: literals in a row, white space aside. */
  readonly start: readonly [string, ...string[]];
  readonly end: string;
  /** Null where the value states the name. */
  readonly head: CallHead | null;
  readonly value: CallValue;
  /** Literals that may come between the value and the end marker, white space aside. */
  readonly beforeEnd?: readonly string[];
}

/** Reads the calls of one completion. */
export class TaggedReader implements BlockReader {
  readonly starts: readonly string[];
  readonly #context: MachineContext;
  readonly #syntax: TaggedSyntax;
  readonly #section: SectionReader;
  readonly #body: CallBodyReader;

  constructor(context: MachineContext, syntax: TaggedSyntax) {
    this.#context = context;
    this.#syntax = syntax;
    const { wrapper, start, end, value, beforeEnd = [] } = syntax;
    const [callStart] = start;
    this.starts = wrapper === null ? [callStart] : [wrapper.start, callStart];
    const followers = wrapper === null ? this.starts : [...this.starts, wrapper.end];
    this.#body = new CallBodyReader(context, { value, ends: [end], followers, beforeEnd });
    this.#section = new SectionReader(context, { wrapper, callStarts: [callStart] }, (block) => this.#readCall(block));
  }

  *readBlock(start: string): Step<void> {
    const block = new CallBlock(this.#context);
    this.#context.cursor.position += start.length;
    yield* this.#section.read(block, start);
  }

  *#readCall(block: CallBlock): Step<void> {
    const { cursor } = this.#context;
    const { start, head } = this.#syntax;
    const from = cursor.offset;
    if (!(yield* acceptAll(cursor, start.slice(1)))) return yield* this.#body.endBad(block);
    const name = head === null ? "" : yield* readHead(cursor, head);
    if (name === null) return yield* this.#body.endBad(block);
    yield* this.#body.read(block, from, name);
  }
}

/** Reads a name and what follows it; null if that is no head. */
export function* readHead(cursor: TextCursor, head: CallHead): Step<string | null> {
  yield* skipSpace(cursor);
  const text = yield* readUntil(cursor, head.stop);
  if (text === null) return null;
  for (const { literal, required } of head.then) {
    yield* skipSpace(cursor);
    if ((yield* accept(cursor, [literal])) === null && required) return null;
  }
  return head.pattern.exec(text.trim())?.[1] ?? null;
}
