import assert from "node:assert/strict";
import fc from "fast-check";
import {
  compareCodePoints,
  concatenate,
  foreign,
  joinTexts,
  plain,
  said,
  slice,
  spansOf,
  splitText,
  type Text,
  unsaidSpansOf,
} from "./text.ts";

const anyText = fc.array(fc.tuple(fc.string({ unit: fc.constantFrom("a", "b", "-"), maxLength: 5 }), fc.boolean()), {
  maxLength: 5,
})
  .map((pieces): Text => concatenate([...pieces.map(([value, out]) => out ? foreign(value) : value), ""]));

/** One flag a character: whether it is foreign. */
function flags(text: Text): boolean[] {
  const spans = spansOf(text);
  return Array.from(
    plain(text),
    (_, index) => spans.some((start, at) => at % 2 === 0 && start <= index && index < (spans[at + 1] ?? 0)),
  );
}

Deno.test("spans are ascending, apart and within the text", () => {
  fc.assert(fc.property(fc.array(anyText, { maxLength: 5 }), (texts) => {
    const text = concatenate([...texts, ""]);
    const spans = spansOf(text);
    assert.equal(spans.length % 2, 0);
    for (let at = 0; at < spans.length; at++) assert.ok((spans[at] ?? 0) > (at === 0 ? -1 : spans[at - 1] ?? 0));
    assert.ok((spans.at(-1) ?? 0) <= plain(text).length);
    assert.deepEqual(flags(text), texts.flatMap(flags));
  }));
});

Deno.test("slices keep the marks of their characters", () => {
  fc.assert(fc.property(anyText, fc.nat(12), fc.nat(12), (text, start, end) => {
    const part = slice(text, start, end);
    assert.equal(plain(part), plain(text).slice(start, end));
    assert.deepEqual(flags(part), flags(text).slice(start, end));
  }));
});

Deno.test("splitting and joining give the text back, marks and all", () => {
  fc.assert(fc.property(anyText, fc.option(fc.nat(3)), (text, limit) => {
    const parts = splitText(text, "-", limit ?? Infinity);
    assert.ok(limit === null || parts.length <= limit + 1);
    assert.equal(plain(joinTexts(parts, "-")), plain(text));
    if (limit === null) assert.deepEqual(parts.map(plain), plain(text).split("-"));
  }));
});

Deno.test("compareCodePoints orders as code points do", () => {
  fc.assert(fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (a, b) => {
    const [left, right] = [Array.from(a, (c) => c.codePointAt(0) ?? 0), Array.from(b, (c) => c.codePointAt(0) ?? 0)];
    const at = left.findIndex((code, index) => code !== right[index]);
    const wanted = at < 0 || at >= right.length ? left.length - right.length : (left[at] ?? 0) - (right[at] ?? 0);
    assert.equal(Math.sign(compareCodePoints(a, b)), Math.sign(wanted));
  }));
});

Deno.test("text keeps what a reply says apart from other foreign text", () => {
  const mixed = concatenate(["a", foreign("bc"), said("de"), "f", said("g")]);
  assert.equal(plain(mixed), "abcdefg");
  assert.deepEqual(spansOf(mixed), [1, 5, 6, 7]);
  assert.deepEqual(unsaidSpansOf(mixed), [1, 3]);
  assert.deepEqual(unsaidSpansOf(slice(mixed, 2, 4)), [0, 1]);
  assert.deepEqual(spansOf(slice(mixed, 2, 4)), [0, 2]);
  assert.deepEqual(unsaidSpansOf("own"), []);
  assert.deepEqual(unsaidSpansOf(concatenate([said("a"), foreign("b"), said("c"), foreign("d")])), [1, 2, 3, 4]);
});
