import assert from "node:assert/strict";
import fc from "fast-check";
import { JsonScanner, type ScanState } from "./json_scanner.ts";
import { TextCursor } from "./text_cursor.ts";

/** Scans a text in pieces: how it ended, and where. */
function scan(pieces: readonly string[]): { state: ScanState; offset: number; members: string[] } {
  const cursor = new TextCursor();
  cursor.keep(0);
  const scanner = new JsonScanner({ keepsMembers: true });
  let state: ScanState = "more";
  for (const piece of pieces) {
    if (state !== "more") break;
    cursor.feed(piece);
    state = scanner.advance(cursor);
  }
  const members = scanner.members.map(({ keyFrom, keyTo, from, to }) =>
    `${cursor.slice(keyFrom, keyTo)}=${cursor.slice(from, to)}`
  );
  return { state, offset: cursor.offset, members };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

Deno.test("JsonScanner ends behind the object and lists its members as written", () => {
  const text = '{"a": 1.0, "b" :[{"c":"}"}] ,"\\u0061":true, "n":-2E+3}';
  assert.deepEqual(scan([text + " rest"]), {
    state: "done",
    offset: text.length,
    members: ['"a"=1.0', '"b"=[{"c":"}"}]', '"\\u0061"=true', '"n"=-2E+3'],
  });
});

Deno.test("JsonScanner takes any object that JSON.stringify writes, in one piece and in characters", () => {
  fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 2), (value, indent) => {
    const text = JSON.stringify(value, null, indent);
    const whole = scan([text]);
    assert.deepEqual([whole.state, whole.offset], ["done", text.length]);
    assert.deepEqual(scan(text.split("")), whole);
  }));
});

Deno.test("JsonScanner agrees with JSON.parse on damaged objects", () => {
  const damaged = fc.tuple(
    fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 })),
    fc.nat(),
    fc.nat(),
  )
    .map(([value, at, kind]) => {
      const text = JSON.stringify(value);
      const index = at % text.length;
      const inserted = ["", ",", '"', "\\", "}", "0", "-", "e", "\n", "\t", "nul", "."][kind % 12] ?? "";
      return text.slice(0, index) + inserted + text.slice(index + (kind % 2));
    })
    .filter((text) => text.startsWith("{"));
  fc.assert(
    fc.property(damaged, (text) => {
      const { state, offset } = scan([text]);
      assert.equal(state === "done" && offset === text.trimEnd().length, isJson(text), text);
      assert.deepEqual(scan(text.split("")), scan([text]));
    }),
    { numRuns: 500 },
  );
});

Deno.test("JsonScanner takes a string, and nothing else that is no object", () => {
  assert.equal(scan(['"{}" ']).state, "done");
  for (const text of ["[1]", "1 ", "null", "'a'", "}"]) assert.equal(scan([text]).state, "error", text);
});

Deno.test("JsonScanner refuses what other readers let pass", () => {
  const texts = [
    '{"a": 01}',
    '{"a": .5}',
    '{"a": +1}',
    '{"a": 1.}',
    '{"a": NaN}',
    '{"a": 1,}',
    "{a: 1}",
    '{"a" 1}',
    '{"a": "\\x"}',
  ];
  for (const text of [...texts, '{"a": "\n"}', '{"a": tru}', '{"a": [1 2]}', '{"a": [}', '{"a": "\\u00g0"}']) {
    assert.equal(scan([text]).state, "error", text);
  }
});
