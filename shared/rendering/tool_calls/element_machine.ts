/**
 * Reads calls written as elements, one for each argument, typed by the tool's schema (rules 8 and 9). It knows the formats
 * as data only.
 */

import { CallBlock, type MachineContext, type TextStatus } from "./call_block.ts";
import { readCalls, type SectionMarkers, SectionReader } from "./call_section.ts";
import { attributesOf, type ElementSyntax, tagFor, type TagHead, unwrapCdata } from "./element_syntax.ts";
import { scanValue } from "./call_body.ts";
import { JsonScanner } from "./json_scanner.ts";
import { compactJson } from "./json_text.ts";
import { escapePattern, MarkerSet } from "./marker_set.ts";
import { accept, acceptAll, peek, readUntil, seek, skipSpace } from "./reading.ts";
import type { Step } from "./text_cursor.ts";
import type { BlockReader } from "./tool_call_format.ts";

interface ArgumentSpan {
  readonly key: string;
  readonly from: number;
  readonly to: number;
}

/** What comes where an argument or the end of the call belongs. */
type Next = { readonly type: "argument"; readonly key: string; readonly isEmpty: boolean } | {
  readonly type: "end" | "broken" | "none";
};

/** How many closing tags are looked for up to the end of the text in vain. */
const MOST_ENDLESS = 16;

/** Reads the calls of one completion. */
export class ElementReader implements BlockReader {
  readonly starts: readonly string[];
  readonly #callStarts: readonly string[];
  readonly #context: MachineContext;
  readonly #syntax: ElementSyntax;
  readonly #section: SectionReader;
  /** Markers that show that a call is over without its end. */
  readonly #outside: string[];
  /** Where a malformed call ends. */
  readonly #bounds: MarkerSet;
  readonly #ending: RegExp;
  readonly #markersByClosing = new Map<string, MarkerSet>();
  /** By closing tag: from where on no value ends, known once the text's end was reached within one. */
  readonly #endlessFrom = new Map<string, number>();

  constructor(context: MachineContext, syntax: ElementSyntax) {
    this.#context = context;
    this.#syntax = syntax;
    const { wrapper, before, call } = syntax;
    const callStarts = before === undefined ? [call.open] : [before[0], call.open];
    this.#callStarts = callStarts;
    this.starts = wrapper === null ? callStarts : [wrapper.start, ...callStarts];
    const { after = null, bounds = [] } = syntax;
    this.#outside = [...this.starts, ...bounds];
    if (wrapper !== null) this.#outside.push(wrapper.end);
    if (after !== null) this.#outside.push(after);
    this.#bounds = MarkerSet.of([...this.#outside, syntax.callEnd]);
    const followers = ["$", ...this.#outside.map(escapePattern)].join("|");
    this.#ending = new RegExp(`${escapePattern(syntax.callEnd)}\\s*(?:${followers})`);
    this.#section = new SectionReader(context, { wrapper, callStarts }, (block, start) => this.#readCall(block, start));
  }

  *readBlock(start: string): Step<void> {
    const block = new CallBlock(this.#context);
    this.#context.cursor.position += start.length;
    yield* this.#section.read(block, start);
  }

  /** Reads calls whose wrapper is of another format. */
  *readWithin(block: CallBlock, markers: Omit<SectionMarkers, "callStarts">): Step<TextStatus> {
    const callStarts = this.#callStarts;
    return yield* readCalls(
      this.#context,
      block,
      { ...markers, callStarts },
      (inner, start) => this.#readCall(inner, start),
    );
  }

  *#readCall(block: CallBlock, start: string): Step<void> {
    const { cursor, sink, tools } = this.#context;
    const { before, call, afterName } = this.#syntax;
    if (before !== undefined && start === before[0]) {
      if (!(yield* acceptAll(cursor, [...before.slice(1), call.open]))) return yield* this.#endBad(block);
    }
    const name = yield* this.#readTag(call);
    if (name === null) return yield* this.#endBad(block);
    if (afterName !== undefined) yield* acceptAll(cursor, [afterName]);
    if (name.isClosed) {
      yield* this.#acceptAfter();
      return block.call({ name: name.text, arguments: "{}" });
    }
    yield* skipSpace(cursor);
    if (this.#syntax.jsonBody && (yield* peek(cursor, ["{"])) !== null) {
      return yield* this.#readJsonBody(block, name.text);
    }
    const spans: ArgumentSpan[] = [];
    let next = yield* this.#readNext();
    while (next.type === "argument") {
      const from = cursor.offset;
      if (next.isEmpty) {
        spans.push({ key: next.key, from, to: from });
        yield* skipSpace(cursor);
        next = yield* this.#readNext();
        continue;
      }
      const ended = yield* this.#readValue(next.key);
      if (ended === null) return yield* this.#endCut(block, from);
      spans.push({ key: next.key, from, to: ended.to });
      next = ended.next;
    }
    if (next.type !== "end") return yield* this.#endBad(block);
    yield* this.#acceptAfter();
    const values = spans.map(({ key, from, to }) => ({ key, text: this.#valueText(cursor.slice(from, to)) }));
    const typeOne = this.#syntax.typeOne;
    block.call({ name: name.text, arguments: tools.typedArguments(name.text, values, sink, typeOne) });
  }

  /** Reads the rest of a tag; null if it is none. */
  *#readTag(tag: TagHead): Step<{ text: string; isClosed: boolean } | null> {
    const { cursor } = this.#context;
    const text = yield* readUntil(cursor, tag.stop);
    if (text === null) return null;
    if (tag.close !== "" && (yield* accept(cursor, [tag.close])) === null) return null;
    if (tag.attribute === undefined) {
      const name = text.trim();
      return name === "" || tag.forbidden?.test(name) ? null : { text: name, isClosed: false };
    }
    const name = attributesOf(tag.open + text).get(tag.attribute);
    return name ? { text: name, isClosed: text.endsWith("/") } : null;
  }

  /** Reads an argument's tag or the end of the call. Where neither comes, nothing is read that could hold a closing tag. */
  *#readNext(): Step<Next> {
    const { cursor } = this.#context;
    const { callEnd, argument } = this.#syntax;
    const literal = yield* peek(cursor, [callEnd, ...this.#outside, argument.open]);
    if (literal === callEnd || literal === argument.open) cursor.position += literal.length;
    if (literal === callEnd) return { type: "end" };
    if (literal === null) return { type: "none" };
    if (literal !== argument.open) return { type: "broken" };
    const key = yield* this.#readTag(argument);
    if (key === null) return { type: "none" };
    const isWhole = argument.then === undefined || (yield* acceptAll(cursor, [argument.then]));
    return isWhole ? { type: "argument", key: key.text, isEmpty: key.isClosed } : { type: "broken" };
  }

  /** Reads a value to the first closing tag that another argument or the end of the call follows (rule 9). */
  *#readValue(key: string): Step<{ to: number; next: Next } | null> {
    const { cursor } = this.#context;
    const from = cursor.offset;
    const { valueEnd, valueStart } = this.#syntax;
    const closing = tagFor(valueEnd, key);
    const cdata = yield* this.#acceptCdata();
    if (this.#isEndless(cdata ?? closing, from)) return null;
    const markers = this.#valueMarkers(cdata ?? closing, valueStart === undefined ? null : tagFor(valueStart, key));
    let depth = 0;
    for (;;) {
      const marker = yield* seek(cursor, markers);
      if (marker === null) {
        this.#endlessFrom.set(cdata ?? closing, from);
        return null;
      }
      let to = cursor.offset;
      cursor.position += marker.length;
      if (marker === cdata) {
        yield* skipSpace(cursor);
        to = cursor.offset;
        if ((yield* accept(cursor, [closing])) === null) continue;
      } else if (marker !== closing) {
        depth++;
        continue;
      } else if (depth > 0) {
        depth--;
        continue;
      }
      yield* skipSpace(cursor);
      const next = yield* this.#readNext();
      if (next.type !== "none") return { to, next };
    }
  }

  /** Whether no value ends from here on. After many different closing tags in vain, none is looked for any more. */
  #isEndless(closing: string, from: number): boolean {
    return from >= (this.#endlessFrom.get(closing) ?? (this.#endlessFrom.size < MOST_ENDLESS ? Infinity : 0));
  }

  /** The markers to look for within a value, made once for each closing tag. */
  #valueMarkers(closing: string, opening: string | null): MarkerSet {
    let markers = this.#markersByClosing.get(closing);
    if (markers === undefined) {
      markers = MarkerSet.of(opening === null ? [closing] : [closing, opening]);
      this.#markersByClosing.set(closing, markers);
    }
    return markers;
  }

  /** Where a value is a CDATA section: what ends the section. */
  *#acceptCdata(): Step<string | null> {
    const { cursor } = this.#context;
    if (!this.#syntax.cdata) return null;
    yield* skipSpace(cursor);
    return (yield* peek(cursor, ["<![CDATA["])) === null ? null : "]]>";
  }

  *#readJsonBody(block: CallBlock, name: string): Step<void> {
    const { cursor } = this.#context;
    const scanner = new JsonScanner({ keepsMembers: false });
    const from = cursor.offset;
    const state = yield* scanValue(cursor, scanner);
    if (state === "more") return block.text("truncated");
    const to = cursor.offset;
    yield* skipSpace(cursor);
    if (state === "error" || (yield* accept(cursor, [this.#syntax.callEnd])) === null) {
      return yield* this.#endBad(block);
    }
    yield* this.#acceptAfter();
    block.call({ name, arguments: compactJson(cursor.slice(from, to)) });
  }

  #valueText(text: string): string {
    if (this.#syntax.cdata) return unwrapCdata(text);
    if (!this.#syntax.valueOnLines) return text;
    return text.replace(/^\n/, "").replace(/\n$/, "");
  }

  *#acceptAfter(): Step<void> {
    const { cursor } = this.#context;
    if (this.#syntax.after === undefined) return;
    yield* skipSpace(cursor);
    yield* accept(cursor, [this.#syntax.after]);
  }

  /** A bad call goes on to its end, or to where another one begins. */
  *#endBad(block: CallBlock): Step<void> {
    const { cursor } = this.#context;
    const bound = yield* seek(cursor, this.#bounds);
    const { callEnd, after } = this.#syntax;
    if (bound === callEnd || bound === after) {
      cursor.position += bound?.length ?? 0;
      yield* this.#acceptAfter();
    }
    block.text(bound === null ? "truncated" : "malformed");
  }

  /** No value ends before the text does: cut off, unless the call's end lies in it and what follows shows that it was meant. */
  *#endCut(block: CallBlock, from: number): Step<void> {
    const { cursor } = this.#context;
    if (this.#ending.test(cursor.slice(from, cursor.endOffset))) {
      cursor.rewind(from);
      return yield* this.#endBad(block);
    }
    cursor.position = cursor.window.length;
    block.text("truncated");
  }
}
