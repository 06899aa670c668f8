import assert from "node:assert/strict";
import type { JsonType } from "./argument_schema.ts";
import { typeValue } from "./typed_value.ts";

/** The JSON text, with a question mark where the text fitted no type. */
function typed(text: string, ...types: JsonType[]): string {
  const { json, fits } = typeValue(text, new Set(types));
  return json + (fits ? "" : "?");
}

Deno.test("typeValue keeps the text of a string as it is", () => {
  for (const text of ["true", "null", "5", '"quoted"', " x \n", "{}", "None"]) {
    assert.equal(typed(text, "string"), JSON.stringify(text));
    assert.deepEqual(typeValue(text, null), { json: JSON.stringify(text), fits: true });
  }
});

Deno.test("typeValue reads null only where it is allowed and exact", () => {
  assert.equal(typed("null", "integer", "null"), "null");
  assert.equal(typed("null", "string", "null"), "null");
  assert.equal(typed("None", "integer", "null"), "null");
  assert.equal(typed("None", "string", "null"), '"None"');
  assert.equal(typed("null", "integer"), '"null"?');
  assert.equal(typed(" null", "integer", "null"), '" null"?');
  assert.equal(typed("NULL", "integer", "null"), '"NULL"?');
});

Deno.test("typeValue reads scalars as JSON, booleans as Python too", () => {
  assert.equal(typed("3.0", "integer"), "3");
  assert.equal(typed("5\n", "integer"), "5");
  assert.equal(typed("2.5", "integer"), '"2.5"?');
  assert.equal(typed("007", "integer"), '"007"?');
  assert.equal(typed("1e3", "number"), "1e3");
  assert.equal(typed("-0.10", "number"), "-0.10");
  assert.equal(typed("NaN", "number"), '"NaN"?');
  assert.equal(typed("True", "boolean"), "true");
  assert.equal(typed("false", "boolean"), "false");
  assert.equal(typed("1", "boolean"), '"1"?');
  assert.equal(typed("yes", "boolean"), '"yes"?');
});

Deno.test("typeValue reads containers as JSON, then as Python", () => {
  assert.equal(typed('{ "b": 1, "1": 12345678901234567890 }', "object"), '{"b":1,"1":12345678901234567890}');
  assert.equal(typed("{'a': None}", "object"), '{"a":null}');
  assert.equal(typed("['a', True]", "array"), '["a",true]');
  assert.equal(typed("(1, 2)", "array"), "[1,2]");
  assert.equal(typed("[1]", "object"), '"[1]"?');
  assert.equal(typed("{}", "array"), '"{}"?');
  assert.equal(typed("a, b", "array"), '"a, b"?');
});

Deno.test("typeValue tries several types in a fixed order, the string last", () => {
  assert.equal(typed("5", "string", "number", "integer"), "5");
  assert.equal(typed("5.5", "integer", "number"), "5.5");
  assert.equal(typed("true", "string", "boolean"), "true");
  assert.equal(typed("[1]", "string", "array"), "[1]");
  assert.equal(typed("x", "string", "array", "integer"), '"x"');
  assert.equal(typed("x", "array", "integer"), '"x"?');
});
