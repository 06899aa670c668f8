/** The values of a template, as Python has them. They hold data; what can be done with them stands elsewhere. */

import { isText, type Text } from "./text.ts";

/** A name or member that is not there: empty as text, false, and an error once it is used. */
export class Undefined {
  /** Why it is not there, as Jinja says it. */
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/** A Python float; a `number` is an int, as is a `bigint` too large for one. */
export class Float {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

export class Tuple {
  readonly items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

export class Dict {
  readonly entries: ReadonlyMap<string, Value>;
  /** Whether the keys came from outside. */
  readonly foreignKeys: boolean;

  constructor(entries: ReadonlyMap<string, Value>, foreignKeys = false) {
    this.entries = entries;
    this.foreignKeys = foreignKeys;
  }
}

/** What only has attributes: `loop`. */
export class Attributes {
  readonly kind: string;
  readonly attributes: Map<string, Value>;

  constructor(kind: string, attributes: Map<string, Value>) {
    this.kind = kind;
    this.attributes = attributes;
  }
}

/** The one thing a template may assign to. */
export class Namespace extends Attributes {
  constructor(attributes: Map<string, Value>) {
    super("Namespace", attributes);
  }
}

export interface Arguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

export class Callable {
  readonly name: string;
  readonly call: (given: Arguments) => Value;

  constructor(name: string, call: (given: Arguments) => Value) {
    this.name = name;
    this.call = call;
  }
}

export type Value =
  | Undefined
  | null
  | boolean
  | number
  | bigint
  | Float
  | Text
  | readonly Value[]
  | Tuple
  | Dict
  | Attributes
  | Callable;

/** What Jinja or Python would raise; the words are theirs. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** Ints and floats; in Python a bool is an int too. */
export function isNumber(value: Value): value is number | bigint | Float | boolean {
  return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean" || value instanceof Float;
}

/** Python's name of a value's type. */
export function typeName(value: Value): string {
  if (value === null) return "NoneType";
  if (isText(value)) return "str";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number" || typeof value === "bigint") return "int";
  if (value instanceof Float) return "float";
  if (value instanceof Tuple) return "tuple";
  if (value instanceof Dict) return "dict";
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof Callable) return "function";
  if (value instanceof Attributes) return value.kind;
  return "list";
}

/** Raises where an undefined value is used. */
export function mustBeDefined(value: Value): void {
  if (value instanceof Undefined) throw new TemplateError(value.reason);
}
