import assert from "node:assert/strict";
import fc from "fast-check";
import { canonicalArguments, canonicalJson } from "./canonical_json.ts";

Deno.test("canonicalArguments compares numbers as doubles", () => {
  for (
    const [one, other] of [["60.0", "60"], ["1e3", "1000"], ["12345678901234567890", "12345678901234567000"], [
      "-0",
      "0",
    ], ["0.1", "1e-1"]]
  ) {
    assert.equal(canonicalArguments(`{"n":${one}}`), canonicalArguments(`{"n":${other}}`));
  }
  assert.notEqual(canonicalArguments('{"n":1e999}'), canonicalArguments('{"n":null}'));
  assert.notEqual(canonicalArguments('{"n":1}'), canonicalArguments('{"n":"1"}'));
  assert.notEqual(canonicalArguments('{"n":9007199254740993}'), canonicalArguments('{"n":9007199254740994}'));
});

Deno.test("canonicalArguments ignores key order, spacing and escapes, and keeps the last of duplicate keys", () => {
  assert.equal(canonicalArguments('{"a": 1,  "b":"\\u00e9"}'), canonicalArguments('{"b":"é","a":1}'));
  assert.equal(canonicalArguments('{"a":1,"a":2}'), canonicalArguments('{"a":2}'));
  assert.notEqual(canonicalArguments('{"a":1,"a":2}'), canonicalArguments('{"a":1}'));
  assert.notEqual(canonicalArguments('{"a":[1,2]}'), canonicalArguments('{"a":[2,1]}'));
  assert.notEqual(canonicalArguments('{"__proto__":1}'), canonicalArguments("{}"));
});

Deno.test("canonicalArguments takes empty text for an empty object and unparsable text for itself", () => {
  assert.equal(canonicalArguments(""), canonicalArguments("{}"));
  assert.notEqual(canonicalArguments('{"a'), canonicalArguments("{}"));
  assert.notEqual(canonicalArguments('{"a'), canonicalArguments('{"a '));
  assert.notEqual(canonicalArguments('{"a'), canonicalArguments(JSON.stringify('!{"a')));
});

Deno.test("canonicalArguments takes what is nested beyond reason for text", () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  assert.equal(canonicalArguments(deep), `!${deep}`);
});

Deno.test("canonicalJson tells any two different values apart and no equal ones", () => {
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
    const [a, b] = [JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other))];
    assert.deepEqual(JSON.parse(canonicalJson(a)!), a);
    let equal = true;
    try {
      assert.deepEqual(a, b);
    } catch {
      equal = false;
    }
    assert.equal(canonicalJson(a) === canonicalJson(b), equal);
  }));
});
