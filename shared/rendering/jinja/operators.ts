/** What Python's operators do with values: truth, equality, order, arithmetic, membership, iteration. */

import { compareCodePoints, concatenate, foreign, isText, plain, slice, type Text } from "./text.ts";
import { toText } from "./representation.ts";
import {
  Callable,
  Dict,
  Float,
  isList,
  isNumber,
  mustBeDefined,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

export function isTrue(value: Value): boolean {
  if (value === null || value instanceof Undefined) return false;
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return value !== 0;
  if (typeof value === "bigint") return value !== 0n;
  if (value instanceof Float) return value.value !== 0;
  if (isText(value)) return plain(value) !== "";
  if (isList(value)) return value.length > 0;
  if (value instanceof Tuple) return value.items.length > 0;
  if (value instanceof Dict) return value.entries.size > 0;
  return true;
}

export function areEqual(left: Value, right: Value): boolean {
  if (isText(left) || isText(right)) return isText(left) && isText(right) && plain(left) === plain(right);
  if (isNumber(left) && isNumber(right)) {
    const [a, b] = [numeric(left), numeric(right)];
    return typeof a === typeof b ? a === b : Number(a) === Number(b);
  }
  if (left instanceof Undefined) return right instanceof Undefined;
  if (isList(left)) return isList(right) && equalItems(left, right);
  if (left instanceof Tuple) return right instanceof Tuple && equalItems(left.items, right.items);
  if (left instanceof Dict) {
    if (!(right instanceof Dict) || left.entries.size !== right.entries.size) return false;
    for (const [key, value] of left.entries) {
      const other = right.entries.get(key);
      if (other === undefined || !areEqual(value, other)) return false;
    }
    return true;
  }
  return left === right;
}

function equalItems(left: readonly Value[], right: readonly Value[]): boolean {
  return left.length === right.length && left.every((item, index) => areEqual(item, right[index] ?? null));
}

/** Negative, zero or positive; raises where Python does not order the two. */
export function compare(left: Value, right: Value, operator: string): number {
  if (isText(left) && isText(right)) return compareCodePoints(plain(left), plain(right));
  if (isNumber(left) && isNumber(right)) {
    const [a, b] = [numeric(left), numeric(right)];
    return a < b ? -1 : a > b ? 1 : 0;
  }
  const [a, b] = [sequenceItems(left), sequenceItems(right)];
  if (a !== null && b !== null && typeName(left) === typeName(right)) {
    for (let index = 0; index < Math.min(a.length, b.length); index++) {
      const [x, y] = [a[index] ?? null, b[index] ?? null];
      if (!areEqual(x, y)) return compare(x, y, operator);
    }
    return a.length - b.length;
  }
  mustBeDefined(left);
  mustBeDefined(right);
  throw new TemplateError(
    `'${operator}' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`,
  );
}

export function numeric(value: number | bigint | Float | boolean): number | bigint {
  if (value instanceof Float) return value.value;
  return typeof value === "boolean" ? Number(value) : value;
}

export function arithmetic(operator: string, left: Value, right: Value): Value {
  mustBeDefined(left);
  mustBeDefined(right);
  if (operator === "~") return concatenate([toText(left), toText(right)]);
  if (isNumber(left) && isNumber(right)) return calculate(operator, left, right);
  if (operator === "+") {
    if (isText(left) && isText(right)) return concatenate([left, right]);
    if (isList(left) && isList(right)) return [...left, ...right];
    if (left instanceof Tuple && right instanceof Tuple) return new Tuple([...left.items, ...right.items]);
    if (isText(left)) throw new TemplateError(`can only concatenate str (not "${typeName(right)}") to str`);
  }
  if (operator === "*") {
    const repeated = repeat(left, right) ?? repeat(right, left);
    if (repeated !== undefined) return repeated;
  }
  if (operator === "%" && isText(left)) return formatPercent(left, right);
  throw new TemplateError(
    `unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`,
  );
}

function repeat(value: Value, count: Value): Value | undefined {
  if (typeof count !== "number" && typeof count !== "boolean") return undefined;
  const times = Math.max(0, Number(count));
  const size = isText(value) ? plain(value).length : isList(value) ? value.length : null;
  if (size === null) return undefined;
  if (size * times > 10_000_000) throw new TemplateError("the template repeats a value to over ten million parts");
  const copies = Array.from({ length: times }, () => value);
  if (isText(value)) return times === 0 ? "" : concatenate(copies.filter(isText));
  return copies.filter(isList).flat();
}

/** The one directive that templates use: `%s`, for one value or a tuple of them. */
function formatPercent(format: Text, given: Value): Value {
  const values = given instanceof Tuple ? [...given.items] : [given];
  const pieces: Text[] = [];
  const value = plain(format);
  let start = 0;
  for (const match of value.matchAll(/%(.?)/gs)) {
    pieces.push(slice(format, start, match.index));
    start = match.index + match[0].length;
    if (match[1] === "%") pieces.push("%");
    else if ((match[1] === "s" || match[1] === "d") && values.length > 0) pieces.push(toText(values.shift() ?? null));
    else throw new TemplateError(`the format ${JSON.stringify(value)} is not supported`);
  }
  if (values.length > 0) throw new TemplateError("not all arguments converted during string formatting");
  pieces.push(slice(format, start));
  return concatenate(pieces);
}

function calculate(
  operator: string,
  left: number | bigint | Float | boolean,
  right: number | bigint | Float | boolean,
): Value {
  const isFloat = left instanceof Float || right instanceof Float;
  const a = Number(numeric(left));
  const b = Number(numeric(right));
  if ((operator === "/" || operator === "//" || operator === "%") && b === 0) {
    throw new TemplateError("division by zero");
  }
  switch (operator) {
    case "+":
      return number(a + b, isFloat);
    case "-":
      return number(a - b, isFloat);
    case "*":
      return number(a * b, isFloat);
    case "/":
      return new Float(a / b);
    case "//":
      return number(Math.floor(a / b), isFloat);
    case "%":
      return number(a - b * Math.floor(a / b), isFloat);
    case "**":
      return number(a ** b, isFloat || b < 0);
    default:
      throw new TemplateError(`the operator ${operator} is not supported`);
  }
}

function number(value: number, isFloat: boolean): Value {
  if (isFloat) return new Float(value);
  if (!Number.isSafeInteger(value)) throw new TemplateError("the template calculates with integers beyond 53 bits");
  return value;
}

export function contains(container: Value, item: Value): boolean {
  if (isText(container)) {
    if (isText(item)) return plain(container).includes(plain(item));
    throw new TemplateError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
  }
  if (container instanceof Dict) return isText(item) && container.entries.has(plain(item));
  const items = sequenceItems(container);
  if (items !== null) return items.some((other) => areEqual(other, item));
  if (container instanceof Undefined) return false;
  throw new TemplateError(`argument of type '${typeName(container)}' is not iterable`);
}

/** The items of a list or tuple, else null. */
export function sequenceItems(value: Value): readonly Value[] | null {
  if (isList(value)) return value;
  return value instanceof Tuple ? value.items : null;
}

/** What a loop goes through. */
export function iterate(value: Value): readonly Value[] {
  const items = sequenceItems(value);
  if (items !== null) return items;
  if (value instanceof Dict) return keysOf(value);
  if (isText(value)) return characters(value);
  if (value instanceof Undefined) return [];
  throw new TemplateError(`'${typeName(value)}' object is not iterable`);
}

export function keysOf(dict: Dict): Text[] {
  return Array.from(dict.entries.keys(), (key) => dict.foreignKeys ? foreign(key) : key);
}

/** The code points of a text, each as a text. */
export function characters(text: Text): Text[] {
  const found: Text[] = [];
  let start = 0;
  for (const character of plain(text)) {
    found.push(slice(text, start, start + character.length));
    start += character.length;
  }
  return found;
}

export function lengthOf(value: Value): number {
  if (isText(value)) {
    let length = 0;
    for (const _ of plain(value)) length++;
    return length;
  }
  if (value instanceof Dict) return value.entries.size;
  const items = sequenceItems(value);
  if (items !== null) return items.length;
  if (value instanceof Undefined) return 0;
  throw new TemplateError(`object of type '${typeName(value)}' has no len()`);
}

export function call(
  callee: Value,
  positional: readonly Value[],
  named: ReadonlyMap<string, Value> = new Map(),
): Value {
  mustBeDefined(callee);
  if (callee instanceof Callable) return callee.call({ positional, named });
  throw new TemplateError(`'${typeName(callee)}' object is not callable`);
}
