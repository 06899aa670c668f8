import assert from "node:assert/strict";
import fc from "fast-check";
import type { Json } from "../../core/message.ts";
import { fromJson, readJsonObject } from "./from_json.ts";
import { areEqual } from "./operators.ts";
import { toJson } from "./representation.ts";
import { plain, spansOf } from "./text.ts";
import { Dict, type Value } from "./values.ts";

const STYLE = { ensureAscii: false, indent: null, separators: [", ", ": "], sortKeys: false } as const;

function dumps(value: Value): string {
  return plain(toJson(value, STYLE));
}

const anyJson = fc.jsonValue().map((value): Json => JSON.parse(JSON.stringify(value)));

Deno.test("readJsonObject reads what JSON.parse reads, and nothing else", () => {
  fc.assert(fc.property(fc.dictionary(fc.string(), anyJson), fc.nat(3), (object, indent) => {
    const plainObject: Json = JSON.parse(JSON.stringify(object));
    const read = readJsonObject(JSON.stringify(plainObject, null, indent));
    assert.ok(read !== null && areEqual(read, fromJson(plainObject)));
  }));
  for (
    const text of [
      "",
      "{",
      "[1]",
      "1",
      '"x"',
      "{} x",
      '{"a":1,}',
      "{'a':1}",
      '{"a":01}',
      '{"a" 1}',
      '{"a":tru}',
      '{"a":"\n"}',
    ]
  ) {
    assert.equal(readJsonObject(text), null, text);
  }
  assert.equal(readJsonObject(`${'{"a":'.repeat(600)}1${"}".repeat(600)}`), null, "nested too deep");
});

Deno.test("readJsonObject and toJson keep numbers as Python does", () => {
  const cases: [string, string][] = [
    ['{"a": 1.0}', '{"a": 1.0}'],
    ['{"a":1e5,"b":1E-7,"c":1.50}', '{"a": 100000.0, "b": 1e-07, "c": 1.5}'],
    ['{"a":123456789012345678901234567890}', '{"a": 123456789012345678901234567890}'],
    ['{"a":-0,"b":-0.0}', '{"a": 0, "b": -0.0}'],
    ['{"a":1e16,"b":1e22,"c":0.0001,"d":0.00001}', '{"a": 1e+16, "b": 1e+22, "c": 0.0001, "d": 1e-05}'],
    ['{"a":NaN,"b":-Infinity}', '{"a": NaN, "b": -Infinity}'],
    ['{"2":1,"1":2,"2":3}', '{"2": 3, "1": 2}'],
  ];
  for (const [text, wanted] of cases) assert.equal(dumps(readJsonObject(text) ?? null), wanted, text);
});

Deno.test("toJson writes JSON that reads back, marked as foreign where a string is", () => {
  fc.assert(fc.property(anyJson, (value) => {
    const json = dumps(fromJson(value));
    assert.deepEqual(JSON.parse(json), value);
  }));
  assert.deepEqual(spansOf(toJson(fromJson({ a: [1, true] }), STYLE)), [0, 16]);
  assert.deepEqual(spansOf(toJson(fromJson([1, true, null]), STYLE)), []);
  assert.deepEqual(spansOf(toJson(fromJson({ a: "x" }, true), STYLE)), []);
  assert.equal(
    plain(toJson(new Dict(new Map([["é", "\u007f\u2028😀"]])), { ...STYLE, ensureAscii: true })),
    '{"\\u00e9": "\u007f\\u2028\\ud83d\\ude00"}',
  );
});
