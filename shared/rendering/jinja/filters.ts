/** Jinja's filters, as far as chat templates use them, and `tojson` as `transformers` defines it. */

import { bind, integerArgument, optionalText, textArgument } from "./arguments.ts";
import { attribute, dictItems, item } from "./members.ts";
import {
  areEqual,
  arithmetic,
  characters,
  compare,
  isTrue,
  iterate,
  lengthOf,
  numeric,
  sequenceItems,
} from "./operators.ts";
import { toJson, toText } from "./representation.ts";
import { capitalize, replaceText } from "./string_methods.ts";
import { concatenate, isText, joinTexts, plain, rewritten, type Text } from "./text.ts";
import {
  type Arguments,
  Dict,
  Float,
  isNumber,
  mustBeDefined,
  TemplateError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";
import { findTest } from "./value_tests.ts";
import { splitLines, strip } from "./white_space.ts";

export type Filter = (value: Value, given: Arguments) => Value;

const FILTERS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ["abs", (value) => isTrue(less(value, 0)) ? arithmetic("-", 0, value) : value],
  ["attr", (value, given) => attribute(value, plain(textArgument("attr", bind("attr", given, ["name"])[0])))],
  ["capitalize", (value) => capitalize(toText(value))],
  ["count", lengthOf],
  ["d", defaultFilter],
  ["default", defaultFilter],
  ["dictsort", dictsort],
  ["first", (value) => at(iterate(value), 0, "No first item, sequence was empty.")],
  ["float", toFloat],
  ["indent", indent],
  ["int", toInteger],
  ["items", items],
  ["join", join],
  ["last", (value) => at(iterate(value), -1, "No last item, sequence was empty.")],
  ["length", lengthOf],
  ["list", (value) => [...iterate(value)]],
  ["lower", (value) => lowercase(toText(value))],
  ["map", map],
  ["max", (value) => extreme(value, 1)],
  ["min", (value) => extreme(value, -1)],
  ["reject", (value, given) => select("reject", value, given, false)],
  ["rejectattr", (value, given) => selectAttribute("rejectattr", value, given, false)],
  ["replace", replace],
  ["reverse", reverse],
  ["round", round],
  ["safe", (value) => value],
  ["select", (value, given) => select("select", value, given, true)],
  ["selectattr", (value, given) => selectAttribute("selectattr", value, given, true)],
  ["sort", sort],
  ["string", (value) => toText(value)],
  ["sum", (value) => iterate(value).reduce<Value>((sum, other) => arithmetic("+", sum, other), 0)],
  ["title", (value) => title(toText(value))],
  ["tojson", tojson],
  ["trim", (value, given) => trim(value, given)],
  ["unique", unique],
  ["upper", (value) => uppercase(toText(value))],
]);

/** Raises for a filter that is not known, as Jinja does before it renders anything. */
export function findFilter(name: string): Filter {
  const filter = FILTERS.get(name);
  if (filter === undefined) throw new TemplateError(`No filter named '${name}'.`);
  return filter;
}

function at(found: readonly Value[], index: number, otherwise: string): Value {
  const item = found.at(index);
  return item === undefined ? new Undefined(otherwise) : item;
}

function less(left: Value, right: Value): boolean {
  return compare(left, right, "<") < 0;
}

function uppercase(text: Text): Text {
  return rewritten(text, plain(text).toUpperCase());
}

function lowercase(text: Text): Text {
  return rewritten(text, plain(text).toLowerCase());
}

function defaultFilter(value: Value, given: Arguments): Value {
  const [otherwise = "", onFalse = false] = bind("default", given, ["default_value", "boolean"]);
  return value instanceof Undefined || (isTrue(onFalse) && !isTrue(value)) ? otherwise : value;
}

function trim(value: Value, given: Arguments): Text {
  const characters = optionalText("trim", bind("trim", given, ["chars"])[0]);
  return strip(toText(value), characters, { left: true, right: true });
}

/** Jinja's own: the first letter of each word up, the rest down. */
function title(text: Text): Text {
  const words = plain(text).split(/([-\s({[<]+)/);
  return rewritten(text, words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase()).join(""));
}

function replace(value: Value, given: Arguments): Text {
  const [old, replacement, count] = bind("replace", given, ["old", "new", "count"]);
  const limit = integerArgument("replace", count, -1);
  return replaceText(toText(value), plain(toText(old ?? null)), toText(replacement ?? null), limit);
}

function indent(value: Value, given: Arguments): Text {
  const [width = 4, first = false, blank = false] = bind("indent", given, ["width", "first", "blank"]);
  const space = isText(width) ? width : " ".repeat(integerArgument("indent", width, 4));
  // Jinja adds a newline first, so that one at the end survives.
  const lines = splitLines(concatenate([toText(value), "\n"]));
  const indented = lines.map((line, index) =>
    index > 0 && (isTrue(blank) || plain(line) !== "") ? concatenate([space, line]) : line
  );
  const text = joinTexts(indented, "\n");
  return isTrue(first) ? concatenate([space, text]) : text;
}

function join(value: Value, given: Arguments): Text {
  const [separator = "", by] = bind("join", given, ["d", "attribute"]);
  const found = by === undefined || by === null ? iterate(value) : iterate(value).map((other) => byPath(other, by));
  return joinTexts(found.map(toText), toText(separator));
}

function toInteger(value: Value, given: Arguments): Value {
  const [otherwise = 0] = bind("int", given, ["default", "base"]);
  if (isNumber(value)) return Math.trunc(Number(numeric(value)));
  if (!isText(value)) return otherwise;
  const text = plain(value).trim();
  if (/^[+-]?\d+$/.test(text)) return Number(text);
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? Math.trunc(Number(text)) : otherwise;
}

function toFloat(value: Value, given: Arguments): Value {
  const [otherwise = new Float(0)] = bind("float", given, ["default"]);
  if (isNumber(value)) return new Float(Number(numeric(value)));
  const text = isText(value) ? plain(value).trim() : "";
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? new Float(Number(text)) : otherwise;
}

/** To the nearest, halves to the even digit, as Python rounds. */
function round(value: Value, given: Arguments): Value {
  const [precision, method = "common"] = bind("round", given, ["precision", "method"]);
  if (!isNumber(value)) throw new TemplateError(`round() wants a number, not ${typeName(value)}`);
  const scale = 10 ** integerArgument("round", precision, 0);
  const scaled = Number(numeric(value)) * scale;
  const how = plain(toText(method));
  if (how === "ceil") return new Float(Math.ceil(scaled) / scale);
  if (how === "floor") return new Float(Math.floor(scaled) / scale);
  const nearest = Math.round(scaled);
  const even = Math.abs(scaled % 1) === 0.5 && nearest % 2 !== 0 ? nearest - 1 : nearest;
  return new Float(even / scale);
}

function items(value: Value): Value {
  if (value instanceof Undefined) return [];
  if (value instanceof Dict) return dictItems(value);
  throw new TemplateError("Can only get item pairs from a mapping.");
}

function dictsort(value: Value, given: Arguments): Value {
  const [caseSensitive = false, by = "key", reversed = false] = bind("dictsort", given, [
    "case_sensitive",
    "by",
    "reverse",
  ]);
  mustBeDefined(value);
  if (!(value instanceof Dict)) throw new TemplateError(`'${typeName(value)}' object has no attribute 'items'`);
  const position = plain(toText(by)) === "value" ? 1 : 0;
  return sorted(
    dictItems(value),
    (pair) => folded(pair.items[position] ?? null, isTrue(caseSensitive)),
    isTrue(reversed),
  );
}

function sort(value: Value, given: Arguments): Value {
  const [reversed = false, caseSensitive = false, by] = bind("sort", given, ["reverse", "case_sensitive", "attribute"]);
  const key = (other: Value) =>
    folded(by === undefined || by === null ? other : byPath(other, by), isTrue(caseSensitive));
  return sorted([...iterate(value)], key, isTrue(reversed));
}

function sorted<Item extends Value>(found: Item[], key: (value: Item) => Value, reversed: boolean): Item[] {
  const order = (a: Item, b: Item) => compare(key(a), key(b), "<");
  // Python keeps equal items in order even when it sorts backwards.
  return found.sort(reversed ? (a, b) => order(b, a) : order);
}

function folded(value: Value, caseSensitive: boolean): Value {
  return isText(value) && !caseSensitive ? plain(value).toLowerCase() : value;
}

function extreme(value: Value, sign: number): Value {
  let found: Value | undefined;
  for (const other of iterate(value)) {
    if (found === undefined || compare(folded(other, false), folded(found, false), "<") * sign > 0) found = other;
  }
  return found === undefined ? new Undefined("No aggregated item, sequence was empty.") : found;
}

function unique(value: Value): Value {
  const found: Value[] = [];
  for (const other of iterate(value)) {
    if (!found.some((known) => areEqual(folded(known, false), folded(other, false)))) found.push(other);
  }
  return found;
}

function reverse(value: Value): Value {
  if (isText(value)) {
    const backwards = characters(value).reverse();
    return backwards.length === 0 ? "" : concatenate(backwards);
  }
  return [...iterate(value)].reverse();
}

function map(value: Value, given: Arguments): Value {
  const by = given.named.get("attribute");
  if (by !== undefined) {
    const otherwise = given.named.get("default");
    return iterate(value).map((other) => {
      const found = byPath(other, by);
      return found instanceof Undefined && otherwise !== undefined ? otherwise : found;
    });
  }
  const [name, ...rest] = given.positional;
  const filter = findFilter(plain(textArgument("map", name)));
  return iterate(value).map((other) => filter(other, { positional: rest, named: given.named }));
}

function select(name: string, value: Value, given: Arguments, wanted: boolean): Value {
  const [test, other = null] = bind(name, given, ["test", "value"]);
  const matches = test === undefined ? isTrue : findTest(plain(textArgument(name, test)));
  return itemsOf(value).filter((found) => matches(found, other) === wanted);
}

function selectAttribute(name: string, value: Value, given: Arguments, wanted: boolean): Value {
  const [by = null, test, other = null] = bind(name, given, ["attribute", "test", "value"]);
  const matches = test === undefined ? isTrue : findTest(plain(textArgument(name, test)));
  return itemsOf(value).filter((found) => matches(byPath(found, by), other) === wanted);
}

/** What is empty or None has no items for these filters, as in Jinja. */
function itemsOf(value: Value): readonly Value[] {
  return isTrue(value) ? iterate(value) : [];
}

/** `a.b.0`: items one inside the other; an integer is an index. */
function byPath(value: Value, path: Value): Value {
  if (!isText(path)) return item(value, path);
  return plain(path).split(".").reduce<Value>(
    (found, part) => item(found, /^\d+$/.test(part) ? Number(part) : part),
    value,
  );
}

/** `json.dumps` with the arguments that `transformers` gives the filter; non-ASCII characters stay as they are. */
function tojson(value: Value, given: Arguments): Text {
  const names = ["ensure_ascii", "indent", "separators", "sort_keys"];
  const [ensureAscii = false, indentation = null, separators = null, sortKeys = false] = bind("tojson", given, names);
  const pair = separators === null ? null : sequenceItems(separators);
  if (separators !== null && pair?.length !== 2) throw new TemplateError("separators must be a tuple of two strings");
  return toJson(value, {
    ensureAscii: isTrue(ensureAscii),
    indent: indentation === null
      ? null
      : isText(indentation)
      ? plain(indentation)
      : " ".repeat(integerArgument("tojson", indentation, 0)),
    separators: [
      pair === null ? (indentation === null ? ", " : ",") : plain(textArgument("tojson", pair[0])),
      pair === null ? ": " : plain(textArgument("tojson", pair[1])),
    ],
    sortKeys: isTrue(sortKeys),
  });
}
