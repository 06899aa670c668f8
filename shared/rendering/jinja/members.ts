/**
 * `value.name`, `value[key]` and `value[start:stop:step]`, in the order in which Jinja looks. Where nothing is found it is
 * undefined: null is None, which is a value.
 */

import { bind } from "./arguments.ts";
import { areEqual, characters, keysOf, lengthOf, sequenceItems } from "./operators.ts";
import { stringMethod } from "./string_methods.ts";
import { concatenate, foreign, isText, plain, slice } from "./text.ts";
import {
  type Arguments,
  Attributes,
  Callable,
  Dict,
  isList,
  mustBeDefined,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

/** `value.name`: an attribute goes before an item of that name. */
export function attribute(value: Value, name: string): Value {
  mustBeDefined(value);
  const found = attributeOf(value, name);
  if (found !== undefined) return found;
  const inside = itemOf(value, name);
  return inside === undefined ? missing(value, name) : inside;
}

/** `value[key]`: an item goes before an attribute of that name. */
export function item(value: Value, key: Value): Value {
  mustBeDefined(value);
  const inside = itemOf(value, key);
  if (inside !== undefined) return inside;
  const found = isText(key) ? attributeOf(value, plain(key)) : undefined;
  return found === undefined ? missing(value, key) : found;
}

function missing(value: Value, key: Value): Undefined {
  const name = isText(key) ? `'${plain(key)}'` : String(key);
  const what = value === null ? "None" : `'${typeName(value)} object'`;
  return new Undefined(`${what} has no ${isText(key) ? "attribute" : "element"} ${name}`);
}

function attributeOf(value: Value, name: string): Value | undefined {
  if (isText(value)) return stringMethod(value, name);
  if (value instanceof Attributes) return value.attributes.get(name);
  if (value instanceof Dict) return dictMethod(value, name);
  const items = sequenceItems(value);
  return items === null ? undefined : sequenceMethod(items, name);
}

function itemOf(value: Value, key: Value): Value | undefined {
  if (value instanceof Dict) return isText(key) ? value.entries.get(plain(key)) : undefined;
  if (typeof key !== "number" && typeof key !== "boolean") return undefined;
  const index = Number(key);
  if (isText(value)) {
    // Without surrogates characters are units.
    const list = /[\ud800-\udfff]/.test(plain(value)) ? characters(value) : null;
    const length = list === null ? plain(value).length : list.length;
    const at = index < 0 ? index + length : index;
    if (at < 0 || at >= length) return undefined;
    return list === null ? slice(value, at, at + 1) : list[at];
  }
  const items = sequenceItems(value);
  return items?.at(index);
}

const DICT_METHODS: ReadonlyMap<string, (dict: Dict, given: Arguments) => Value> = new Map([
  ["get", (dict: Dict, given: Arguments) => {
    const [key = null, otherwise = null] = bind("get", given, ["key", "default"]);
    const found = isText(key) ? dict.entries.get(plain(key)) : undefined;
    return found === undefined ? otherwise : found;
  }],
  ["items", (dict: Dict) => dictItems(dict)],
  ["keys", (dict: Dict) => keysOf(dict)],
  ["values", (dict: Dict) => [...dict.entries.values()]],
  ["copy", (dict: Dict) => dict],
]);
const MUTATORS = new Set([
  "append",
  "extend",
  "insert",
  "remove",
  "reverse",
  "sort",
  "clear",
  "pop",
  "popitem",
  "setdefault",
  "update",
]);

function dictMethod(dict: Dict, name: string): Value | undefined {
  const method = DICT_METHODS.get(name);
  if (method !== undefined) return new Callable(name, (given) => method(dict, given));
  return MUTATORS.has(name) ? unsafe("dict", name) : undefined;
}

function sequenceMethod(items: readonly Value[], name: string): Value | undefined {
  switch (name) {
    case "index":
      return new Callable(name, (given) => {
        const [wanted = null] = bind(name, given, ["value"]);
        const index = items.findIndex((other) => areEqual(other, wanted));
        if (index < 0) throw new TemplateError("the value is not in the list");
        return index;
      });
    case "count":
      return new Callable(name, (given) => {
        const [wanted = null] = bind(name, given, ["value"]);
        return items.filter((other) => areEqual(other, wanted)).length;
      });
    default:
      return MUTATORS.has(name) ? unsafe("list", name) : undefined;
  }
}

/** Templates run in an immutable sandbox. */
function unsafe(kind: string, name: string): Undefined {
  return new Undefined(`access to attribute '${name}' of '${kind}' object is unsafe.`);
}

export function dictItems(dict: Dict): Tuple[] {
  return Array.from(dict.entries, ([key, value]) => new Tuple([dict.foreignKeys ? foreign(key) : key, value]));
}

/** Python's slice; the bounds are None where they are left out. */
export function sliceValue(value: Value, bounds: { start: Value; stop: Value; step: Value }): Value {
  mustBeDefined(value);
  const length = lengthOf(value);
  const step = bound(bounds.step) ?? 1;
  if (step === 0) throw new TemplateError("slice step cannot be zero");
  const [low, high] = step > 0 ? [0, length] : [-1, length - 1];
  const at = (given: number | null, otherwise: number) =>
    given === null ? otherwise : Math.min(Math.max(given < 0 ? given + length : given, low), high);
  const start = at(bound(bounds.start), step > 0 ? low : high);
  const stop = at(bound(bounds.stop), step > 0 ? high : low);
  const indexes: number[] = [];
  for (let index = start; step > 0 ? index < stop : index > stop; index += step) indexes.push(index);
  if (isText(value)) {
    if (step === 1 && length === plain(value).length) return slice(value, start, Math.max(start, stop));
    const list = characters(value);
    return indexes.length === 0 ? "" : concatenate(indexes.map((index) => list[index] ?? ""));
  }
  const items = sequenceItems(value);
  if (items === null) throw new TemplateError(`'${typeName(value)}' object is not subscriptable`);
  const taken = indexes.map((index) => items[index] ?? null);
  return isList(value) ? taken : new Tuple(taken);
}

function bound(value: Value): number | null {
  if (value === null || value instanceof Undefined) return null;
  if (typeof value === "number" || typeof value === "boolean") return Number(value);
  throw new TemplateError("slice indices must be integers or None");
}
