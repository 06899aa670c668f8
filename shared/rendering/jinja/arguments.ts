/** Reading the arguments of a call by position or name, with Python's complaints. */

import { isText, plain, type Text } from "./text.ts";
import { type Arguments, TemplateError, typeName, type Value } from "./values.ts";

/** The arguments in the order of `names`; undefined where one is not given. More than the names is an error. */
export function bind(callee: string, given: Arguments, names: readonly string[]): (Value | undefined)[] {
  if (given.positional.length > names.length) {
    throw new TemplateError(`${callee}() takes at most ${names.length} arguments (${given.positional.length} given)`);
  }
  for (const name of given.named.keys()) {
    if (!names.includes(name)) throw new TemplateError(`${callee}() got an unexpected keyword argument '${name}'`);
  }
  // None is a value, and null here.
  return names.map((name, index) => index < given.positional.length ? given.positional[index] : given.named.get(name));
}

export function textArgument(callee: string, value: Value | undefined): Text {
  if (value !== undefined && isText(value)) return value;
  throw new TemplateError(`${callee}() wants a str, not ${value === undefined ? "nothing" : typeName(value)}`);
}

/** None, like nothing, is null. */
export function optionalText(callee: string, value: Value | undefined): string | null {
  return value === undefined || value === null ? null : plain(textArgument(callee, value));
}

export function integerArgument(callee: string, value: Value | undefined, otherwise: number): number {
  if (value === undefined || value === null) return otherwise;
  if (typeof value === "number" || typeof value === "boolean") return Number(value);
  throw new TemplateError(`${callee}() wants an int, not ${typeName(value)}`);
}
