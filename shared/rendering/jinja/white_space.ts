/** Python's notion of white space and line ends, which are not JavaScript's. */

import { plain, slice, type Text } from "./text.ts";

const WHITE_SPACE = new Set("\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000");
for (let code = 0x2000; code <= 0x200a; code++) WHITE_SPACE.add(String.fromCharCode(code));
const LINE_END = new RegExp("\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]", "g");

export function isWhiteSpace(character: string): boolean {
  return WHITE_SPACE.has(character);
}

/** Without the characters at its ends; `null` means white space. */
export function strip(text: Text, characters: string | null, ends: { left: boolean; right: boolean }): Text {
  const value = plain(text);
  const set = characters === null ? WHITE_SPACE : new Set(characters);
  let start = 0;
  let end = value.length;
  while (ends.left && start < end) {
    const character = String.fromCodePoint(value.codePointAt(start) ?? 0);
    if (!set.has(character)) break;
    start += character.length;
  }
  while (ends.right && end > start) {
    const low = value.charCodeAt(end - 1);
    const pair = low >= 0xdc00 && low <= 0xdfff && end - start > 1;
    const character = pair ? value.slice(end - 2, end) : value.charAt(end - 1);
    if (!set.has(character)) break;
    end -= character.length;
  }
  return slice(text, start, end);
}

/** The words between white space, at most `limit` of them before the rest. */
export function splitWords(text: Text, limit = Infinity): Text[] {
  const value = plain(text);
  const words: Text[] = [];
  let at = 0;
  while (true) {
    while (at < value.length && isWhiteSpace(value.charAt(at))) at++;
    if (at >= value.length) return words;
    if (words.length >= limit) {
      words.push(slice(text, at));
      return words;
    }
    const start = at;
    while (at < value.length && !isWhiteSpace(value.charAt(at))) at++;
    words.push(slice(text, start, at));
  }
}

/** The lines without their ends. */
export function splitLines(text: Text): Text[] {
  const value = plain(text);
  const lines: Text[] = [];
  let start = 0;
  for (const match of value.matchAll(LINE_END)) {
    lines.push(slice(text, start, match.index));
    start = match.index + match[0].length;
  }
  if (start < value.length) lines.push(slice(text, start));
  return lines;
}
