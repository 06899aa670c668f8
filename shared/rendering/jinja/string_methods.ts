/** Methods of Python's `str`, as far as chat templates use them. */

import { bind, integerArgument, optionalText, textArgument } from "./arguments.ts";
import { isTrue, iterate } from "./operators.ts";
import { toText } from "./representation.ts";
import { concatenate, isText, joinTexts, plain, rewritten, slice, splitText, type Text } from "./text.ts";
import { type Arguments, Callable, TemplateError, Tuple, type Value } from "./values.ts";
import { splitLines, splitWords, strip } from "./white_space.ts";

type Method = (text: Text, given: Arguments, name: string) => Value;

const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ["strip", (text, given, name) => stripped(text, given, { name, left: true, right: true })],
  ["lstrip", (text, given, name) => stripped(text, given, { name, left: true, right: false })],
  ["rstrip", (text, given, name) => stripped(text, given, { name, left: false, right: true })],
  ["split", split],
  ["rsplit", splitFromRight],
  ["splitlines", (text) => splitLines(text)],
  ["partition", (text, given, name) => partition(text, given, { name, last: false })],
  ["rpartition", (text, given, name) => partition(text, given, { name, last: true })],
  ["replace", replaceMethod],
  ["join", (text, given, name) => joinTexts(iterate(bind(name, given, ["iterable"])[0] ?? null).map(asText), text)],
  ["startswith", (text, given, name) => affixes(given, name).some((affix) => plain(text).startsWith(affix))],
  ["endswith", (text, given, name) => affixes(given, name).some((affix) => plain(text).endsWith(affix))],
  ["removeprefix", (text, given, name) => {
    const [affix = ""] = affixes(given, name);
    return plain(text).startsWith(affix) ? slice(text, affix.length) : text;
  }],
  ["removesuffix", (text, given, name) => {
    const [affix = ""] = affixes(given, name);
    return affix !== "" && plain(text).endsWith(affix) ? slice(text, 0, plain(text).length - affix.length) : text;
  }],
  ["find", (text, given, name) => codePointIndex(text, plain(text).indexOf(affixes(given, name)[0] ?? ""))],
  ["rfind", (text, given, name) => codePointIndex(text, plain(text).lastIndexOf(affixes(given, name)[0] ?? ""))],
  ["count", (text, given, name) => splitText(text, affixes(given, name)[0] ?? "").length - 1],
  ["upper", (text) => rewritten(text, plain(text).toUpperCase())],
  ["lower", (text) => rewritten(text, plain(text).toLowerCase())],
  ["capitalize", (text) => capitalize(text)],
  ["title", (text) => rewritten(text, plain(text).replace(/\p{L}+/gu, (word) => capitalized(word)))],
  ["format", formatMethod],
  ["isdigit", (text) => /^\p{Nd}+$/u.test(plain(text))],
  ["isalpha", (text) => /^\p{L}+$/u.test(plain(text))],
  ["isalnum", (text) => /^[\p{L}\p{N}]+$/u.test(plain(text))],
  ["isspace", (text) => plain(text) !== "" && plain(strip(text, null, { left: true, right: true })) === ""],
  ["isupper", (text) => isCased(plain(text)) && plain(text) === plain(text).toUpperCase()],
  ["islower", (text) => isCased(plain(text)) && plain(text) === plain(text).toLowerCase()],
]);

/** The method bound to its text; undefined where `str` has none of that name, or none that is known here. */
export function stringMethod(text: Text, name: string): Callable | undefined {
  const method = METHODS.get(name);
  return method === undefined ? undefined : new Callable(name, (given) => method(text, given, name));
}

export function replaceText(text: Text, old: string, replacement: Text, limit = -1): Text {
  const most = limit < 0 ? Infinity : limit;
  if (old !== "") return joinTexts(splitText(text, old, most), replacement);
  // An empty pattern matches before every character and at the end.
  const pieces: Text[] = [];
  let count = 0;
  let at = 0;
  for (const character of plain(text)) {
    if (count++ < most) pieces.push(replacement);
    pieces.push(slice(text, at, at + character.length));
    at += character.length;
  }
  if (count < most) pieces.push(replacement);
  return concatenate(pieces.length === 0 ? [""] : pieces);
}

export function capitalize(text: Text): Text {
  return rewritten(text, capitalized(plain(text)));
}

function capitalized(value: string): string {
  const first = String.fromCodePoint(value.codePointAt(0) ?? 0);
  return value === "" ? value : first.toUpperCase() + value.slice(first.length).toLowerCase();
}

function stripped(text: Text, given: Arguments, how: { name: string; left: boolean; right: boolean }): Text {
  return strip(text, optionalText(how.name, bind(how.name, given, ["chars"])[0]), how);
}

function split(text: Text, given: Arguments, name: string): Value {
  const [separator, most] = bind(name, given, ["sep", "maxsplit"]);
  const limit = integerArgument(name, most, -1);
  const by = optionalText(name, separator);
  if (by === null) return splitWords(text, limit < 0 ? Infinity : limit);
  if (by === "") throw new TemplateError("empty separator");
  return splitText(text, by, limit < 0 ? Infinity : limit);
}

function splitFromRight(text: Text, given: Arguments, name: string): Value {
  const [separator, most] = bind(name, given, ["sep", "maxsplit"]);
  const limit = integerArgument(name, most, -1);
  const by = optionalText(name, separator);
  if (limit < 0) return split(text, given, name);
  if (by === null || by === "") throw new TemplateError("rsplit() with maxsplit wants a separator here");
  const parts = splitText(text, by);
  const kept = parts.slice(0, Math.max(0, parts.length - limit));
  return [...(kept.length === 0 ? [] : [joinTexts(kept, by)]), ...parts.slice(kept.length)];
}

function partition(text: Text, given: Arguments, { name, last }: { name: string; last: boolean }): Value {
  const separator = plain(textArgument(name, bind(name, given, ["sep"])[0]));
  if (separator === "") throw new TemplateError("empty separator");
  const at = last ? plain(text).lastIndexOf(separator) : plain(text).indexOf(separator);
  if (at < 0) return new Tuple(last ? ["", "", text] : [text, "", ""]);
  const end = at + separator.length;
  return new Tuple([slice(text, 0, at), slice(text, at, end), slice(text, end)]);
}

function replaceMethod(text: Text, given: Arguments, name: string): Value {
  const [old, replacement, count] = bind(name, given, ["old", "new", "count"]);
  const limit = integerArgument(name, count, -1);
  return replaceText(text, plain(textArgument(name, old)), textArgument(name, replacement), limit);
}

const FIELD = /\{\{|\}\}|\{(\w*)\}/g;

/** Fields by place, number or name; no attributes, conversions or format specifications. */
function formatMethod(text: Text, given: Arguments): Text {
  const value = plain(text);
  const pieces: Text[] = [];
  let end = 0;
  let next = 0;
  for (const match of value.matchAll(FIELD)) {
    pieces.push(literal(slice(text, end, match.index)));
    end = match.index + match[0].length;
    const [whole, field = ""] = match;
    if (whole === "{{" || whole === "}}") {
      pieces.push(slice(text, match.index, match.index + 1));
      continue;
    }
    const place = field === "" ? next++ : /^\d+$/.test(field) ? Number(field) : null;
    const found = place === null ? given.named.get(field) : given.positional[place];
    if (found === undefined) throw new TemplateError(`format() has no argument for the field {${field}}`);
    pieces.push(toText(found));
  }
  return concatenate([...pieces, literal(slice(text, end))]);
}

function literal(text: Text): Text {
  if (/[{}]/.test(plain(text))) throw new TemplateError("format() knows {}, {0} and {name} only here");
  return text;
}

/** A text or a tuple of texts. */
function affixes(given: Arguments, name: string): string[] {
  const affix = bind(name, given, ["prefix"])[0];
  if (affix instanceof Tuple) return affix.items.map((item) => plain(textArgument(name, item)));
  return [plain(textArgument(name, affix))];
}

function asText(value: Value): Text {
  if (isText(value)) return value;
  throw new TemplateError("sequence item: expected str instance");
}

function codePointIndex(text: Text, index: number): number {
  if (index < 0) return index;
  let count = 0;
  for (const _ of plain(text).slice(0, index)) count++;
  return count;
}

function isCased(value: string): boolean {
  return isTrue(value) && /[\p{Lu}\p{Ll}\p{Lt}]/u.test(value);
}
