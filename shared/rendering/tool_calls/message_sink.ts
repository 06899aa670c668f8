/**
 * Builds the assistant message from what a machine reports, as deltas and whole. White space beside markup and reasoning is
 * dealt with here (rules 2 and 3). It knows no format.
 */

import type { ParsedCompletion, ParseDelta } from "../../ports/completion_parser.ts";
import type { ParseReport } from "../../core/turn.ts";
import { isSpaceCode } from "./reading.ts";

/** A call as read. */
export interface ReadCall {
  readonly name: string;
  /** JSON text of an object. */
  readonly arguments: string;
}

/** Kinds of problems that leave the status alone. */
export type ProblemKind = "unknown_tool" | "argument_type" | "unknown_parameter";

/** How many characters of the input went where; together they are the input's length. */
export interface Accounting {
  reasoning: number;
  content: number;
  markup: number;
}

/** Takes text, calls and markup in order. Every character of the input is reported once. */
export class MessageSink {
  /** Where the input went. */
  readonly accounting: Accounting = { reasoning: 0, content: 0, markup: 0 };
  /** Where in the input the reasoning stands: starts and ends, ascending and apart. */
  readonly reasoningSpans: [start: number, end: number][] = [];

  #deltas: ParseDelta[] = [];
  #content: string[] = [];
  #reasoning: string[] = [];
  #calls: ReadCall[] = [];
  #status: ParseReport["status"] = "ok";
  #problems = new Set<ProblemKind>();

  /** Content that may have to go or to wait: white space that markup may follow, or half a character. */
  #heldContent = "";
  #skipsSpace = false;
  #joinsContent = false;
  #heldReasoning = "";
  #skipsNewlines = true;
  #joinsReasoning = false;

  /** Text of the answer. */
  content(text: string): void {
    this.accounting.content += text.length;
    this.inject(text);
  }

  /** Text of the answer that is not from the input. */
  inject(text: string): void {
    let start = 0;
    if (this.#skipsSpace) {
      while (start < text.length && isSpaceCode(text.charCodeAt(start))) start++;
      if (start === text.length) return;
      this.#skipsSpace = false;
    }
    let end = text.length;
    while (end > start && isSpaceCode(text.charCodeAt(end - 1))) end--;
    if (end === text.length && end > start && isHighSurrogate(text.charCodeAt(end - 1))) end--;
    if (end > start) {
      const join = this.#joinsContent ? "\n" : "";
      this.#joinsContent = false;
      this.#emitContent(join + this.#heldContent + text.slice(start, end));
      this.#heldContent = text.slice(end);
    } else {
      this.#heldContent += text.slice(start);
    }
  }

  /** Markup of calls, `length` characters: the white space beside it goes, texts on its two sides are joined by a newline. */
  markup(length: number): void {
    this.accounting.markup += length;
    const held = this.#heldContent.trimEnd();
    if (held.length > 0) this.#emitContent(held);
    this.#heldContent = "";
    this.#skipsSpace = true;
    this.#joinsContent = this.#content.length > 0;
  }

  /** Framing that is no call, `length` characters: it goes, and leaves the text around it alone. */
  framing(length: number): void {
    this.accounting.markup += length;
  }

  /** A call, `length` characters with its markup. */
  call(call: ReadCall, length: number): void {
    this.markup(length);
    this.#calls.push(call);
    this.#deltas.push({ type: "tool_call", name: call.name, arguments: call.arguments });
  }

  /** Text of the reasoning. */
  reasoning(text: string): void {
    this.#span(text.length);
    this.accounting.reasoning += text.length;
    let start = 0;
    if (this.#skipsNewlines) {
      while (start < text.length && text.charCodeAt(start) === 10) start++;
      if (start === text.length) return;
      this.#skipsNewlines = false;
    }
    let end = text.length;
    while (end > start && text.charCodeAt(end - 1) === 10) end--;
    if (end === text.length && end > start && isHighSurrogate(text.charCodeAt(end - 1))) end--;
    if (end > start) {
      const join = this.#joinsReasoning ? "\n" : "";
      this.#joinsReasoning = false;
      this.#emitReasoning(join + this.#heldReasoning + text.slice(start, end));
      this.#heldReasoning = text.slice(end);
    } else {
      this.#heldReasoning += text.slice(start);
    }
  }

  /** The end of a reasoning block: white space that follows goes, and so do newlines before it. */
  endReasoning(): void {
    const held = this.#heldReasoning.replace(/\n+$/, "");
    if (held.length > 0) this.#emitReasoning(held);
    this.#heldReasoning = "";
    this.#skipsNewlines = true;
    this.#joinsReasoning = this.#reasoning.length > 0;
    this.#skipsSpace = true;
  }

  /** Raises the status; `truncated` wins over `malformed`. */
  report(status: ParseReport["status"]): void {
    if (status === "truncated" || (status === "malformed" && this.#status === "ok")) this.#status = status;
  }

  /** Notes a problem. */
  problem(kind: ProblemKind): void {
    this.#problems.add(kind);
  }

  /** The end of the text: nothing is held any more. */
  end(): void {
    this.endReasoning();
    if (this.#heldContent.length > 0) this.#emitContent(this.#heldContent);
    this.#heldContent = "";
  }

  /** The deltas since the last call. */
  take(): ParseDelta[] {
    const deltas = this.#deltas;
    this.#deltas = [];
    return deltas;
  }

  /** The whole message. */
  result(): ParsedCompletion {
    return {
      reasoning: this.#reasoning.length > 0 ? this.#reasoning.join("") : null,
      content: this.#content.length > 0 ? this.#content.join("") : null,
      toolCalls: [...this.#calls],
      parse: { status: this.#status, problems: [...this.#problems] },
    };
  }

  #span(length: number): void {
    if (length === 0) return;
    const start = this.accounting.reasoning + this.accounting.content + this.accounting.markup;
    const last = this.reasoningSpans.at(-1);
    if (last?.[1] === start) last[1] += length;
    else this.reasoningSpans.push([start, start + length]);
  }

  #emitContent(text: string): void {
    this.#content.push(text);
    this.#push("content", text);
  }

  #emitReasoning(text: string): void {
    this.#reasoning.push(text);
    this.#push("reasoning", text);
  }

  #push(type: "content" | "reasoning", text: string): void {
    const last = this.#deltas.at(-1);
    if (last?.type === type) this.#deltas[this.#deltas.length - 1] = { type, text: last.text + text };
    else this.#deltas.push({ type, text });
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
