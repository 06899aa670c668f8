/**
 * A stretch of text that holds calls, from its first marker on. Its raw text stays at hand until one good call is known;
 * only then does its markup go (rule 6: a block in which no call is good stays whole, as text). It knows no format.
 */

import type { MessageSink, ReadCall } from "./message_sink.ts";
import type { TextCursor } from "./text_cursor.ts";
import type { ToolTable } from "./tool_table.ts";

/** What a machine works on. */
export interface MachineContext {
  readonly cursor: TextCursor;
  readonly sink: MessageSink;
  readonly tools: ToolTable;
}

/** What is wrong with a stretch that stays as text; `nothing` where it never was a call. */
export type TextStatus = "malformed" | "truncated" | "nothing";

/** The reader says of everything it has read whether it was markup, text or a call; each time for what was read since the last. */
export class CallBlock {
  /** Whether a good call was found. */
  hasCall = false;
  /** Whether a bad call was found. */
  hasBad = false;

  readonly #context: MachineContext;
  readonly #start: number;
  #mark: number;
  #status: TextStatus = "nothing";
  #pending: { readonly isText: boolean; readonly from: number; readonly to: number }[] = [];

  /** Begins where the cursor stands, or at a kept offset before it. */
  constructor(context: MachineContext, start: number = context.cursor.offset) {
    this.#context = context;
    this.#start = start;
    this.#mark = start;
    context.cursor.keep(start);
  }

  /** What was read is markup. */
  markup(): void {
    const { cursor, sink } = this.#context;
    const from = this.#mark;
    this.#mark = cursor.offset;
    if (this.#mark === from) return;
    if (this.hasCall) {
      sink.markup(this.#mark - from);
      cursor.keep(this.#mark);
    } else {
      this.#pending.push({ isText: false, from, to: this.#mark });
    }
  }

  /** What was read is text: a bad call, or text where none belongs. */
  text(status: TextStatus): void {
    const { cursor, sink } = this.#context;
    const from = this.#mark;
    this.#raise(status);
    this.#mark = cursor.offset;
    if (status !== "nothing") this.hasBad = true;
    if (this.#mark === from) return;
    if (this.hasCall) {
      sink.content(cursor.slice(from, this.#mark));
      cursor.keep(this.#mark);
    } else {
      this.#pending.push({ isText: true, from, to: this.#mark });
    }
  }

  /** What was read is a good call. */
  call(call: ReadCall): void {
    const { cursor, sink, tools } = this.#context;
    if (!this.hasCall) this.#flush();
    this.hasCall = true;
    if (!tools.has(call.name)) sink.problem("unknown_tool");
    sink.call(call, cursor.offset - this.#mark);
    this.#mark = cursor.offset;
    cursor.keep(this.#mark);
  }

  /** The end. `status` says what a block without calls is, if no bad call said so already. */
  close(status: TextStatus): void {
    const { cursor, sink } = this.#context;
    if (this.hasCall) {
      this.text("nothing");
    } else {
      this.#raise(status);
      sink.content(cursor.slice(this.#start, cursor.offset));
    }
    if (this.#status !== "nothing") sink.report(this.#status);
    cursor.release();
  }

  #flush(): void {
    const { cursor, sink } = this.#context;
    for (const { isText, from, to } of this.#pending) {
      if (isText) sink.content(cursor.slice(from, to));
      else sink.markup(to - from);
    }
    this.#pending = [];
  }

  #raise(status: TextStatus): void {
    if (status === "truncated" || this.#status === "nothing") this.#status = status;
  }
}
