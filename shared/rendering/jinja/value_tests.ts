/** Jinja's tests (`is defined`, `is mapping`, ...), with those that `selectattr` names. */

import { areEqual, compare, contains, numeric, sequenceItems } from "./operators.ts";
import { isText, plain } from "./text.ts";
import { Callable, Dict, Float, isNumber, mustBeDefined, TemplateError, Undefined, type Value } from "./values.ts";

type Test = (value: Value, other: Value) => boolean;

const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["defined", (value) => !(value instanceof Undefined)],
  ["undefined", (value) => value instanceof Undefined],
  ["none", (value) => value === null],
  ["boolean", (value) => typeof value === "boolean"],
  ["true", (value) => value === true],
  ["false", (value) => value === false],
  ["string", isText],
  ["number", isNumber],
  ["integer", (value) => typeof value === "number" || typeof value === "bigint"],
  ["float", (value) => value instanceof Float],
  ["mapping", (value) => value instanceof Dict],
  [
    "sequence",
    (value) => isText(value) || value instanceof Dict || sequenceItems(value) !== null || value instanceof Undefined,
  ],
  [
    "iterable",
    (value) => isText(value) || value instanceof Dict || sequenceItems(value) !== null || value instanceof Undefined,
  ],
  ["callable", (value) => value instanceof Callable],
  ["odd", (value) => remainder(value) === 1],
  ["even", (value) => remainder(value) === 0],
  ["lower", (value) => isText(value) && isCased(plain(value)) && plain(value) === plain(value).toLowerCase()],
  ["upper", (value) => isText(value) && isCased(plain(value)) && plain(value) === plain(value).toUpperCase()],
  ["in", (value, other) => contains(other, value)],
  ["eq", areEqual],
  ["equalto", areEqual],
  ["==", areEqual],
  ["ne", (value, other) => !areEqual(value, other)],
  ["!=", (value, other) => !areEqual(value, other)],
  ["gt", (value, other) => compare(value, other, ">") > 0],
  ["greaterthan", (value, other) => compare(value, other, ">") > 0],
  [">", (value, other) => compare(value, other, ">") > 0],
  ["ge", (value, other) => compare(value, other, ">=") >= 0],
  [">=", (value, other) => compare(value, other, ">=") >= 0],
  ["lt", (value, other) => compare(value, other, "<") < 0],
  ["lessthan", (value, other) => compare(value, other, "<") < 0],
  ["<", (value, other) => compare(value, other, "<") < 0],
  ["le", (value, other) => compare(value, other, "<=") <= 0],
  ["<=", (value, other) => compare(value, other, "<=") <= 0],
  ["sameas", (value, other) => value === other],
]);

/** Raises for a test that is not known. */
export function findTest(name: string): Test {
  const test = TESTS.get(name);
  if (test === undefined) throw new TemplateError(`No test named '${name}'.`);
  return test;
}

function remainder(value: Value): number {
  mustBeDefined(value);
  if (!isNumber(value)) throw new TemplateError("not all arguments converted during string formatting");
  return Math.abs(Number(numeric(value)) % 2);
}

function isCased(value: string): boolean {
  return /[\p{Lu}\p{Ll}\p{Lt}]/u.test(value);
}
