import assert from "node:assert/strict";
import { z } from "zod";
import { VerbatimError } from "../core/errors.ts";
import { parseWith } from "./parse_with.ts";

/** What is said of a value that does not fit. */
function refusalOf(schema: z.ZodType, value: unknown): { code: string; message: string; details: unknown } {
  try {
    parseWith(schema, value, "body");
  } catch (thrown) {
    assert.ok(thrown instanceof VerbatimError);
    return { code: thrown.code, message: thrown.message, details: thrown.details };
  }
  throw new Error("It fits");
}

Deno.test("parseWith gives the schema's output", () => {
  const schema = z.strictObject({ n: z.int().default(3), list: z.array(z.string()).transform((list) => list.length) });
  assert.deepEqual(parseWith(schema, { list: ["a", "b"] }, "body"), { n: 3, list: 2 });
});

Deno.test("parseWith names an unknown field with its path", () => {
  const schema = z.strictObject({ main: z.strictObject({ list: z.array(z.strictObject({})) }).optional() });
  assert.deepEqual(refusalOf(schema, { odd: 1, odder: 2 }), {
    code: "unknown_field",
    message: 'Unknown field "odd" in the body',
    details: { field: "odd", fields: ["odd", "odder"] },
  });
  assert.deepEqual(refusalOf(schema, { main: { list: [{}, { odd: 1 }] } }), {
    code: "unknown_field",
    message: 'Unknown field "main.list.1.odd" in the body',
    details: { field: "main.list.1.odd", fields: ["odd"] },
  });
});

Deno.test("parseWith names the field that does not fit, and why", () => {
  const schema = z.strictObject({ sampling: z.strictObject({ top_p: z.number().max(1) }) });
  const refusal = refusalOf(schema, { sampling: { top_p: 2 } });
  assert.equal(refusal.code, "invalid_request");
  assert.match(refusal.message, /^Field "sampling.top_p": Too big/);
  assert.match(refusalOf(schema, {}).message, /^Field "sampling": Invalid input: expected object/);
});

Deno.test("parseWith speaks of the whole value by the name of its place", () => {
  const refusal = refusalOf(z.strictObject({}), [1]);
  assert.match(refusal.message, /^The body: Invalid input: expected object, received array$/);
  assert.deepEqual(refusal.details, { field: null, reason: "Invalid input: expected object, received array" });
});

Deno.test("parseWith takes of a union's reasons the deepest, through unions within", () => {
  const call = z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: z.string() }) });
  const schema = z.strictObject({ choice: z.union([z.enum(["auto", "none"]), call]) });
  const refusal = refusalOf(schema, { choice: { type: "function", function: { name: 5 } } });
  assert.equal(refusal.message, 'Field "choice.function.name": Invalid input: expected string, received number');

  const nested = z.strictObject({
    at: z.union([z.string(), z.array(z.union([z.int(), z.strictObject({ id: z.int() })]))]),
  });
  assert.equal(
    refusalOf(nested, { at: [1, { id: "x" }] }).message,
    'Field "at.1.id": Invalid input: expected number, received string',
  );
  assert.equal(refusalOf(nested, { at: [1, { id: 1, odd: 2 }] }).message, 'Unknown field "at.1.odd" in the body');
});

Deno.test("parseWith takes of branches equally deep the one with the fewest complaints", () => {
  const text = z.strictObject({ type: z.literal("text"), text: z.string() });
  const image = z.strictObject({ type: z.literal("image"), url: z.string() });
  const schema = z.array(z.union([text, image]));
  assert.match(refusalOf(schema, [{ type: "image", url: 5 }]).message, /^Field "0.url": /);
  assert.match(refusalOf(schema, [{ type: "text", text: 5 }]).message, /^Field "0.text": /);
});

Deno.test("parseWith gives all reasons of a union that fits nowhere", () => {
  const schema = z.strictObject({ stop: z.union([z.string(), z.array(z.string())]) });
  assert.equal(
    refusalOf(schema, { stop: 5 }).message,
    'Field "stop": Invalid input: expected string, received number; or Invalid input: expected array, received number',
  );
});

Deno.test("parseWith refuses a value nested too deeply to be taken apart", () => {
  const depth = 100_000;
  const deep: unknown = JSON.parse("[".repeat(depth) + "]".repeat(depth));
  assert.deepEqual(refusalOf(z.strictObject({ metadata: z.json() }), { metadata: deep }), {
    code: "invalid_request",
    message: "The body is nested too deeply",
    details: { field: null, reason: "nested too deeply" },
  });
});
