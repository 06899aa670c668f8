import assert from "node:assert/strict";
import fc from "fast-check";
import { compactJson, integerDigits, isJsonNumber } from "./json_text.ts";

Deno.test("compactJson takes out white space between tokens only", () => {
  assert.equal(compactJson('{ "a b" : [ 1.0 ,\n"\\" x" ] }'), '{"a b":[1.0,"\\" x"]}');
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    assert.equal(compactJson(JSON.stringify(value, null, 2)), JSON.stringify(value));
  }));
});

Deno.test("integerDigits keeps all digits of an integer however it is spelled", () => {
  const cases: readonly [string, string | null][] = [
    ["5", "5"],
    ["-5", "-5"],
    ["3.0", "3"],
    ["1e3", "1000"],
    ["1.50e1", "15"],
    ["100e-2", "1"],
    ["0.0", "0"],
    ["-0", "0"],
    ["0e999999", "0"],
    ["123456789012345678901234567890", "123456789012345678901234567890"],
    ["12345678901234567890.000", "12345678901234567890"],
    ["2.5", null],
    ["1e-1", null],
    ["1e999999", null],
    ["05", null],
    ["five", null],
    ["", null],
  ];
  for (const [text, expected] of cases) assert.equal(integerDigits(text), expected, text);
});

Deno.test("isJsonNumber tells JSON's numbers from others", () => {
  for (const text of ["0", "-1.5", "1E+2"]) assert.ok(isJsonNumber(text), text);
  for (const text of ["+1", ".5", "1.", "0x1", "NaN", " 1"]) assert.ok(!isJsonNumber(text), text);
});
