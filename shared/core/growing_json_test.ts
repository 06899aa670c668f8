import assert from "node:assert/strict";
import fc from "fast-check";
import { parseGrowing, sharedItems } from "./growing_json.ts";

const FIELDS = ["messages", "input"];
const bytesOf = (text: string) => new TextEncoder().encode(text);

/** JSON text with white space where JSON allows it, keys in any order, some of them twice. */
const value = fc.json({ maxDepth: 3 });
const space = fc.constantFrom("", " ", "\n\t", "  ");
const item = fc.oneof(
  value,
  fc.constantFrom("1", "12", "true", "null", '"]"', '"\\\\"', '"a\\"]b"', "[]", "{}", '{"a":"}"}', '"ü\u{1f600}"'),
);
const members = fc.array(
  fc.tuple(fc.constantFrom("model", "tools", "n", "mess\\u0061ges", "messages", "input"), value),
  { maxLength: 3 },
);
const body = fc.record({ before: members, items: fc.array(item, { maxLength: 6 }), after: members, space });

type Body = { before: [string, string][]; items: string[]; after: [string, string][]; space: string };

function textOf({ before, items, after, space: s }: Body, field = "messages"): string {
  const member = ([key, of]: [string, string]) => `"${key}"${s}:${s}${of}`;
  const list = `"${field}"${s}:${s}[${s}${items.join(`${s},${s}`)}${s}]`;
  return `${s}{${s}${[...before.map(member), list, ...after.map(member)].join(`${s},${s}`)}${s}}${s}`;
}

function same(text: string, known: ReturnType<typeof parseGrowing>["known"]): ReturnType<typeof parseGrowing> {
  const grown = parseGrowing(bytesOf(text), FIELDS, known);
  assert.deepEqual(grown.value, JSON.parse(text));
  return grown;
}

Deno.test("A body that grows is parsed as JSON.parse parses it, whatever it grows by", () => {
  fc.assert(
    fc.property(body, fc.array(item, { maxLength: 3 }), members, fc.nat(6), (first, more, after, kept) => {
      const { known } = same(textOf(first), null);
      const next = same(textOf({ ...first, items: [...first.items, ...more] }), known);
      same(textOf({ ...first, items: [...first.items.slice(0, kept), ...more], after }), known);
      same(textOf({ ...first, items: [...first.items.slice(0, kept), ...more], after }), next.known);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("Any two bodies one after the other are parsed as JSON.parse parses them", () => {
  fc.assert(
    fc.property(body, body, fc.constantFrom(...FIELDS), (first, second, field) => {
      same(textOf(second, field), same(textOf(first), null).known);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("What is known is taken for what it was: the same objects, and nothing of it is parsed again", () => {
  const first = parseGrowing(bytesOf('{"model":"m","messages":[{"a":1},{"b":2}],"n":1}'), FIELDS);
  const next = parseGrowing(bytesOf('{"model":"m","messages":[{"a":1},{"b":2},{"c":3}],"n":2}'), FIELDS, first.known);
  assert.deepEqual(next.value, { model: "m", messages: [{ a: 1 }, { b: 2 }, { c: 3 }], n: 2 });
  assert.equal(next.knownItems, 2);
  assert.equal(next.known!.items[1], first.known!.items[1]);
  assert.equal(sharedItems(bytesOf('{"model":"m","messages":[{"a":1},{"b":3}]}'), next.known!), 1);
  assert.equal(sharedItems(bytesOf('{"model":"x","messages":[{"a":1},{"b":2}]}'), next.known!), 0);
});

Deno.test("A list that is cut, or written a second time, is what JSON.parse makes of it", () => {
  const { known } = parseGrowing(bytesOf('{"messages":[{"a":1},{"b":2}]}'), FIELDS);
  for (
    const text of [
      '{"messages":[{"a":1}]}',
      '{"messages":[{"a":1},{"b":2}],"messages":[7]}',
      '{"messages":[{"a":1},{"b":2}],"mess\\u0061ges":[null]}',
      '{"messages":[{"a":1},{"b":2}],"n":{"messages":[null]}}',
    ]
  ) same(text, known);
});

Deno.test("A number that goes on is another number", () => {
  const { known } = parseGrowing(bytesOf('{"messages":[{"a":1},12]}'), FIELDS);
  same('{"messages":[{"a":1},123]}', known);
  same('{"messages":[{"a":1},12.5,7]}', known);
});

Deno.test("What is no JSON, or no UTF-8, is refused as ever, known or not", () => {
  const { known } = parseGrowing(bytesOf('{"messages":[{"a":1},{"b":2}]}'), FIELDS);
  const broken = [
    '{"messages":[{"a":1},{"b":2}',
    '{"messages":[{"a":1},{"b":2},]}',
    '{"messages":[{"a":1},{"b":2}]}x',
    '{"messages":[{"a":1},{"b":2}"c"]}',
    '{"messages":[{"a":1},{"b":2}\ufeff]}',
    '{"messages":[{"a":1},{"b":2}null]}',
  ];
  for (const text of broken) {
    assert.throws(() => JSON.parse(text), SyntaxError);
    assert.throws(() => parseGrowing(bytesOf(text), FIELDS, known), SyntaxError);
  }
  const cut = new Uint8Array([...bytesOf('{"messages":[{"a":1},{"b":2},"'), 0xc3, ...bytesOf('"]}')]);
  assert.throws(() => parseGrowing(cut, FIELDS, known), TypeError);
});

Deno.test("What two long bodies have in common is found to the byte, wherever they part", () => {
  const items = Array.from({ length: 300 }, (_, k) => JSON.stringify({ text: `${k} `.repeat(k) }));
  const text = `{"messages":[${items.join(",")}]}`;
  const bytes = bytesOf(text);
  const { known } = parseGrowing(bytes, FIELDS);
  assert.ok(bytes.length > 100_000);
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), (at) => {
      const other = bytes.slice();
      other[at]! ^= 1;
      assert.equal(sharedItems(other, known!), known!.ends.filter((end) => end <= at).length);
    }),
    { numRuns: 500 },
  );
});
