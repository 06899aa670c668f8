/**
 * Text that remembers which stretches of it came from outside the template: a message may write what looks like a control
 * token, and only the template's own words may be one. It knows neither templates nor tokens.
 */

/** A string with foreign stretches. A plain `string` is the template's own. */
export class ForeignText {
  readonly value: string;
  /** Ascending and apart: start and end of each foreign stretch, in UTF-16 units. Never empty. */
  readonly spans: readonly number[];

  constructor(value: string, spans: readonly number[]) {
    this.value = value;
    this.spans = spans;
  }
}

export type Text = string | ForeignText;

/** All of it from outside. */
export function foreign(value: string): Text {
  return value === "" ? value : new ForeignText(value, [0, value.length]);
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

/** The pieces one after the other. */
export function concatenate(pieces: readonly Text[]): Text {
  if (pieces.length === 1) return pieces[0] ?? "";
  let value = "";
  const spans: number[] = [];
  for (const piece of pieces) {
    if (typeof piece !== "string") {
      for (let index = 0; index < piece.spans.length; index += 2) {
        const start = value.length + (piece.spans[index] ?? 0);
        const end = value.length + (piece.spans[index + 1] ?? 0);
        if (spans.length > 0 && spans[spans.length - 1] === start) spans[spans.length - 1] = end;
        else spans.push(start, end);
      }
      value += piece.value;
    } else value += piece;
  }
  return spans.length === 0 ? value : new ForeignText(value, spans);
}

/** From one UTF-16 unit up to another. */
export function slice(text: Text, start: number, end?: number): Text {
  if (typeof text === "string") return text.slice(start, end);
  const value = text.value.slice(start, end);
  if (value.length === text.value.length) return text;
  const spans: number[] = [];
  for (let index = 0; index < text.spans.length; index += 2) {
    const from = Math.max((text.spans[index] ?? 0) - start, 0);
    const to = Math.min((text.spans[index + 1] ?? 0) - start, value.length);
    if (from < to) spans.push(from, to);
  }
  return spans.length === 0 ? value : new ForeignText(value, spans);
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
