/**
 * Text that remembers which stretches of it came from outside the template: a message may write what looks like a control
 * token, and only the template's own words may be one. It knows neither templates nor tokens.
 */

/** A string with foreign stretches. A plain `string` is the template's own. */
export class ForeignText {
  readonly value: string;
  /** Ascending and apart: start and end of each foreign stretch, in UTF-16 units. Never empty. */
  readonly spans: readonly number[];
  /** The stretches among them that a reply of the model says. */
  readonly saidSpans: readonly number[];

  constructor(value: string, spans: readonly number[], saidSpans: readonly number[] = []) {
    this.value = value;
    this.spans = spans;
    this.saidSpans = saidSpans;
  }
}

export type Text = string | ForeignText;

/** All of it from outside. */
export function foreign(value: string): Text {
  return value === "" ? value : new ForeignText(value, [0, value.length]);
}

/** All of it from outside, and what a reply of the model says. */
export function said(value: string): Text {
  const all = [0, value.length];
  return value === "" ? value : new ForeignText(value, all, all);
}

export function isText(value: unknown): value is Text {
  return typeof value === "string" || value instanceof ForeignText;
}

export function plain(text: Text): string {
  return typeof text === "string" ? text : text.value;
}

export function spansOf(text: Text): readonly number[] {
  return typeof text === "string" ? [] : text.spans;
}

/** The foreign stretches that no reply says: those of instructions, users, results, tools, calls. */
export function unsaidSpansOf(text: Text): readonly number[] {
  if (typeof text === "string") return [];
  const spans: number[] = [];
  let next = 0;
  for (let index = 0; index < text.spans.length; index += 2) {
    let start = text.spans[index] ?? 0;
    const end = text.spans[index + 1] ?? 0;
    for (; next < text.saidSpans.length && (text.saidSpans[next] ?? 0) < end; next += 2) {
      const from = text.saidSpans[next] ?? 0;
      if (start < from) spans.push(start, from);
      start = text.saidSpans[next + 1] ?? 0;
    }
    if (start < end) spans.push(start, end);
  }
  return spans;
}

/** The pieces one after the other. */
export function concatenate(pieces: readonly Text[]): Text {
  if (pieces.length === 1) return pieces[0] ?? "";
  let value = "";
  const spans: number[] = [];
  const saidSpans: number[] = [];
  for (const piece of pieces) {
    if (typeof piece !== "string") {
      append(spans, piece.spans, value.length);
      append(saidSpans, piece.saidSpans, value.length);
      value += piece.value;
    } else value += piece;
  }
  return spans.length === 0 ? value : new ForeignText(value, spans, saidSpans);
}

function append(spans: number[], more: readonly number[], offset: number): void {
  for (let index = 0; index < more.length; index += 2) {
    const start = offset + (more[index] ?? 0);
    const end = offset + (more[index + 1] ?? 0);
    if (spans.length > 0 && spans[spans.length - 1] === start) spans[spans.length - 1] = end;
    else spans.push(start, end);
  }
}

/** From one UTF-16 unit up to another. */
export function slice(text: Text, start: number, end?: number): Text {
  if (typeof text === "string") return text.slice(start, end);
  const value = text.value.slice(start, end);
  if (value.length === text.value.length) return text;
  const first = start < 0 ? Math.max(text.value.length + start, 0) : start;
  const spans = clipped(text.spans, first, value.length);
  return spans.length === 0 ? value : new ForeignText(value, spans, clipped(text.saidSpans, first, value.length));
}

function clipped(spans: readonly number[], start: number, length: number): number[] {
  const kept: number[] = [];
  for (let index = 0; index < spans.length; index += 2) {
    const from = Math.max((spans[index] ?? 0) - start, 0);
    const to = Math.min((spans[index + 1] ?? 0) - start, length);
    if (from < to) kept.push(from, to);
  }
  return kept;
}

/** Another writing of a text, foreign as a whole if the text was so in part. */
export function rewritten(text: Text, value: string): Text {
  return typeof text === "string" ? value : foreign(value);
}

/** The text cut at every occurrence of a separator, at most `limit` times. */
export function splitText(text: Text, separator: string, limit = Infinity): Text[] {
  const value = plain(text);
  const parts: Text[] = [];
  let start = 0;
  while (parts.length < limit) {
    const at = value.indexOf(separator, start);
    if (at < 0) break;
    parts.push(slice(text, start, at));
    start = at + separator.length;
  }
  parts.push(slice(text, start));
  return parts;
}

export function joinTexts(parts: readonly Text[], separator: Text): Text {
  const pieces: Text[] = [];
  for (const [index, part] of parts.entries()) {
    if (index > 0) pieces.push(separator);
    pieces.push(part);
  }
  return pieces.length === 0 ? "" : concatenate(pieces);
}

/** By code points, as Python orders text; UTF-16 units order otherwise beyond U+FFFF. */
export function compareCodePoints(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const a = left.charCodeAt(index);
    const b = right.charCodeAt(index);
    if (a === b) continue;
    const [surrogateA, surrogateB] = [a >= 0xd800 && a <= 0xdfff, b >= 0xd800 && b <= 0xdfff];
    return surrogateA === surrogateB ? a - b : surrogateA ? 1 : -1;
  }
  return left.length - right.length;
}
