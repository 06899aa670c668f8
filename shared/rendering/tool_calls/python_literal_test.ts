import assert from "node:assert/strict";
import fc from "fast-check";
import { parsePythonLiteral } from "./python_literal.ts";

function json(text: string): string | undefined {
  return parsePythonLiteral(text)?.json;
}

Deno.test("parsePythonLiteral writes literals as compact JSON", () => {
  const cases: readonly [string, string][] = [
    ["None", "null"],
    ["True", "true"],
    [" [ 1 , -2.5 , ] ", "[1,-2.5]"],
    ["(1, 'a')", '[1,"a"]'],
    ["(1)", "1"],
    ["(1,)", "[1]"],
    ["()", "[]"],
    ["((((1, 2), 3)))", "[[1,2],3]"],
    ["{'a': {'b': None}, \"c\": (True, False)}", '{"a":{"b":null},"c":[true,false]}'],
    ["{1: 2, None: 3, True: 4, 'a': 5, 'a': 6}", '{"1":2,"null":3,"true":4,"a":6}'],
    ["123456789012345678901234567890", "123456789012345678901234567890"],
    ["1_000", "1000"],
    ["+5", "5"],
    ["00", "0"],
    ["0x1F", "31"],
    ["-0b101", "-5"],
    [".5", "0.5"],
    ["5.", "5.0"],
    ["1.e3", "1.0e3"],
    ["1e-3", "1e-3"],
  ];
  for (const [text, expected] of cases) assert.equal(json(text), expected, text);
});

Deno.test("parsePythonLiteral reads strings with any quotes, escapes and prefixes", () => {
  const cases: readonly [string, string][] = [
    ["'it''s'", "its"],
    ["\"a\" 'b'", "ab"],
    ["'''a'b\n\"c'''", "a'b\n\"c"],
    ['"""a"b"""', 'a"b'],
    ["r'\\n\\'x'", "\\n\\'x"],
    ["'\\x41\\u00e9\\U0001F600\\101\\n\\\\\\'\\q'", "Aé😀A\n\\'\\q"],
    ["'a\\\nb'", "ab"],
    ["''", ""],
  ];
  for (const [text, expected] of cases) assert.equal(json(text), JSON.stringify(expected), text);
});

Deno.test("parsePythonLiteral refuses what is no literal", () => {
  const texts = [
    "",
    "Oslo",
    "f(1)",
    "1 2",
    "[1",
    "[1 2]",
    "{'a'}",
    "{'a': }",
    "{[1]: 2}",
    "'a",
    "'a\nb'",
    "01",
    "1j",
    "'\\x4'",
  ];
  for (const text of [...texts, "-None", "0x", "1e999", "[".repeat(300) + "]".repeat(300)]) {
    assert.equal(json(text), undefined, text);
  }
});

Deno.test("parsePythonLiteral does not try nested parentheses twice", () => {
  const depth = 150;
  assert.equal(json("(".repeat(depth) + "1, 2" + ")".repeat(depth)), "[1,2]");
  assert.equal(json("(".repeat(depth) + "1 2" + ")".repeat(depth)), undefined);
});

Deno.test("parsePythonLiteral reads what JSON.stringify writes", () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    const literal = parsePythonLiteral(JSON.stringify(value));
    assert.deepEqual(JSON.parse(literal?.json ?? "0"), JSON.parse(JSON.stringify(value)));
  }));
});
