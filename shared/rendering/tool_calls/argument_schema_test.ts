import assert from "node:assert/strict";
import type { Json } from "../../core/message.ts";
import { ArgumentSchema } from "./argument_schema.ts";

/** The types that a schema's only property allows, sorted; null: any. */
function typesOf(property: Json, definitions: Json = {}): string[] | null {
  const schema = new ArgumentSchema({ properties: { x: property }, $defs: definitions });
  const types = schema.typesOf(schema.propertyOf("x") ?? null);
  return types === null ? null : [...types].sort();
}

Deno.test("ArgumentSchema reads types, type lists, enum and const", () => {
  assert.deepEqual(typesOf({ type: "integer" }), ["integer"]);
  assert.deepEqual(typesOf({ type: ["string", "null"] }), ["null", "string"]);
  assert.deepEqual(typesOf({ enum: ["a", 1, 1.5, null] }), ["integer", "null", "number", "string"]);
  assert.deepEqual(typesOf({ enum: [[1], {}, true] }), ["array", "boolean", "object"]);
  assert.deepEqual(typesOf({ type: ["string", "null"], enum: ["a", "b"] }), ["string"]);
  assert.deepEqual(typesOf({ type: "number", enum: [1, 2] }), ["integer"]);
  assert.deepEqual(typesOf({ const: 5 }), ["integer"]);
  assert.deepEqual(typesOf({ type: "string", nullable: true }), ["null", "string"]);
});

Deno.test("ArgumentSchema takes what says nothing as any type", () => {
  for (
    const property of [{}, true, { description: "x" }, { type: "varchar" }, { anyOf: [] }, {
      anyOf: [{}, { type: "null" }],
    }]
  ) {
    assert.equal(typesOf(property), null);
  }
});

Deno.test("ArgumentSchema unites anyOf and oneOf, and intersects allOf", () => {
  assert.deepEqual(typesOf({ anyOf: [{ type: "integer" }, { type: "null" }] }), ["integer", "null"]);
  assert.deepEqual(typesOf({ oneOf: [{ type: "array" }, { enum: ["a"] }] }), ["array", "string"]);
  assert.deepEqual(typesOf({ allOf: [{ type: ["string", "integer"] }, { type: "number" }] }), ["integer"]);
  assert.deepEqual(typesOf({ type: "object", anyOf: [{ required: ["a"] }, { required: ["b"] }] }), ["object"]);
  assert.deepEqual(typesOf({ type: "string", allOf: [{ type: "integer" }] }), ["string"]);
});

Deno.test("ArgumentSchema takes properties for an object and items for an array where no type is given", () => {
  assert.deepEqual(typesOf({ properties: {} }), ["object"]);
  assert.deepEqual(typesOf({ items: {} }), ["array"]);
});

Deno.test("ArgumentSchema follows references within the document", () => {
  const definitions = { A: { $ref: "#/$defs/B~1C" }, "B/C": { type: "boolean" }, "D E": { type: "null" } };
  assert.deepEqual(typesOf({ $ref: "#/$defs/A" }, definitions), ["boolean"]);
  assert.deepEqual(typesOf({ $ref: "#/$defs/D%20E" }, definitions), ["null"]);
  assert.deepEqual(typesOf({ anyOf: [{ $ref: "#/$defs/A" }, { type: "string" }] }, definitions), ["boolean", "string"]);
  for (const reference of ["#/$defs/None", "other.json#/A", "#/%"]) assert.equal(typesOf({ $ref: reference }), null);
});

Deno.test("ArgumentSchema is not caught in cycles nor in schemas that refer to each other many times over", () => {
  assert.equal(typesOf({ $ref: "#/$defs/A" }, { A: { $ref: "#/$defs/A" } }), null);
  const definitions: { [key: string]: Json } = { L0: { type: "integer" } };
  for (let level = 1; level < 40; level++) {
    const below = { $ref: `#/$defs/L${level - 1}` };
    definitions[`L${level}`] = { anyOf: [below, below], allOf: [below, below] };
  }
  assert.deepEqual(typesOf({ $ref: "#/$defs/L30" }, definitions), ["integer"]);
});

Deno.test("ArgumentSchema finds properties and items behind references and combinations", () => {
  const schema = new ArgumentSchema({
    $ref: "#/$defs/Root",
    $defs: {
      Root: { allOf: [{ properties: { a: { type: "array", $ref: "#/$defs/List" } } }, { properties: { b: true } }] },
      List: { items: { type: "integer" } },
    },
  });
  const list = schema.propertyOf("a") ?? null;
  assert.deepEqual(schema.itemsOf(list), { type: "integer" });
  assert.equal(schema.propertyOf("b"), true);
  assert.equal(schema.propertyOf("toString"), undefined);
  assert.ok(schema.declaresProperties);
  assert.ok(!new ArgumentSchema({ type: "object" }).declaresProperties);
});
