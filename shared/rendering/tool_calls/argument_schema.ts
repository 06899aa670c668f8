/** Which types a JSON schema allows a value to have. It validates nothing. */

import type { Json } from "../../core/message.ts";

/** A type of JSON Schema. */
export type JsonType = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

/** The types a value may have; null: any, the schema says nothing. */
export type AllowedTypes = ReadonlySet<JsonType> | null;

type SchemaObject = { readonly [key: string]: Json };

const TYPES: ReadonlySet<string> = new Set(["null", "boolean", "integer", "number", "string", "array", "object"]);

/** How many references and combinations deep a schema is followed; what is deeper says nothing. */
const DEEPEST = 64;

/** How many parts of a schema are looked through for a property. */
const MOST_PARTS = 1000;

/** A tool's schema, and how its parts are found. */
export class ArgumentSchema {
  readonly #root: Json;
  /** What is known of the parts; null while a part is being looked at, so that a cycle says nothing. */
  readonly #known = new Map<SchemaObject, AllowedTypes>();

  constructor(root: Json) {
    this.#root = root;
  }

  /** The types that `schema`, a part of this one, allows. */
  typesOf(schema: Json): AllowedTypes {
    return this.#types(schema, 0);
  }

  /** The schema of a property, or undefined where none is declared. Without `of`, a property of the whole. */
  propertyOf(key: string, of: Json = this.#root): Json | undefined {
    for (const part of this.#parts(of)) {
      const properties = part.properties;
      if (isObject(properties) && Object.hasOwn(properties, key)) return properties[key];
    }
    return undefined;
  }

  /** The schema of an array's elements, or undefined where none is declared. */
  itemsOf(schema: Json): Json | undefined {
    for (const part of this.#parts(schema)) if (part.items !== undefined) return part.items;
    return undefined;
  }

  /** Whether any properties are declared at all. */
  get declaresProperties(): boolean {
    for (const part of this.#parts(this.#root)) if (isObject(part.properties)) return true;
    return false;
  }

  #types(schema: Json, depth: number): AllowedTypes {
    if (!isObject(schema) || depth > DEEPEST) return null;
    const known = this.#known.get(schema);
    if (known !== undefined) return known;
    this.#known.set(schema, null);
    const types = this.#combinedTypes(schema, depth);
    this.#known.set(schema, types);
    return types;
  }

  #combinedTypes(schema: SchemaObject, depth: number): AllowedTypes {
    let types: AllowedTypes = ownTypes(schema);
    if (typeof schema.$ref === "string") types = both(types, this.#types(this.#resolve(schema.$ref), depth + 1));
    for (const part of listOf(schema.allOf)) types = both(types, this.#types(part, depth + 1));
    for (const choices of [schema.anyOf, schema.oneOf]) {
      if (Array.isArray(choices) && choices.length > 0) types = both(types, this.#union(choices, depth + 1));
    }
    if (types !== null) return schema.nullable === true ? new Set([...types, "null" as const]) : types;
    if (isObject(schema.properties)) return new Set<JsonType>(["object"]);
    return schema.items === undefined ? null : new Set<JsonType>(["array"]);
  }

  #union(choices: readonly Json[], depth: number): AllowedTypes {
    const union = new Set<JsonType>();
    for (const choice of choices) {
      const types = this.#types(choice, depth);
      if (types === null) return null;
      for (const type of types) union.add(type);
    }
    return union;
  }

  /** The schema with all that its references and combinations bring in, each once. */
  *#parts(schema: Json, seen = new Set<SchemaObject>()): Generator<SchemaObject> {
    if (!isObject(schema) || seen.has(schema) || seen.size > MOST_PARTS) return;
    seen.add(schema);
    yield schema;
    if (typeof schema.$ref === "string") yield* this.#parts(this.#resolve(schema.$ref), seen);
    for (const list of [schema.allOf, schema.anyOf, schema.oneOf]) {
      for (const part of listOf(list)) yield* this.#parts(part, seen);
    }
  }

  /** What a reference within the document (`#/$defs/X`) points to; null where it points nowhere. */
  #resolve(reference: string): Json {
    if (!reference.startsWith("#")) return null;
    let target: Json | undefined = this.#root;
    for (const step of reference.split("/").slice(1)) {
      const key = decodePointer(step);
      if (Array.isArray(target)) target = target[Number(key)];
      else target = isObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
      if (target === undefined) return null;
    }
    return target;
  }
}

function ownTypes(schema: SchemaObject): AllowedTypes {
  let types: AllowedTypes = null;
  const names = listOf(typeof schema.type === "string" ? [schema.type] : schema.type);
  const declared = names.filter((name): name is JsonType => typeof name === "string" && TYPES.has(name));
  if (declared.length > 0) types = new Set(declared);
  if (Array.isArray(schema.enum) && schema.enum.length > 0) types = both(types, new Set(schema.enum.map(typeOfValue)));
  if (schema.const !== undefined) types = both(types, new Set([typeOfValue(schema.const)]));
  return types;
}

/** The types that both allow; where they contradict each other, the first has its way. */
function both(first: AllowedTypes, second: AllowedTypes): AllowedTypes {
  if (first === null || second === null) return first ?? second;
  const common = new Set<JsonType>();
  for (const type of first) {
    if (second.has(type) || (type === "integer" && second.has("number"))) common.add(type);
    if (type === "number" && second.has("integer")) common.add("integer");
  }
  return common.size > 0 ? common : first;
}

function typeOfValue(value: Json): JsonType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  switch (typeof value) {
    case "boolean":
      return "boolean";
    case "number":
      return Number.isInteger(value) ? "integer" : "number";
    case "string":
      return "string";
    default:
      return "object";
  }
}

function decodePointer(step: string): string {
  const plain = step.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
