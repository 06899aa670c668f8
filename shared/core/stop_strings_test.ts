import assert from "node:assert/strict";
import fc from "fast-check";
import { mayBeStopping, StopStringCutter } from "./stop_strings.ts";

Deno.test("StopStringCutter releases nothing that could begin a stop string", () => {
  const cutter = new StopStringCutter(["</function"]);
  assert.equal(cutter.push("a <"), "a ");
  assert.equal(cutter.push("/fun"), "");
  assert.equal(cutter.push("k"), "</funk");
  assert.equal(cutter.push(" </function> rest"), " ");
  assert.equal(cutter.push("more"), "");
  assert.equal(cutter.finish("</function"), "");
});

Deno.test("StopStringCutter gives held text back when no stop string ended the generation", () => {
  const cutter = new StopStringCutter(["STOP"]);
  assert.equal(cutter.push("go STOP on"), "go ");
  assert.equal(cutter.finish(null), "STOP on");
});

Deno.test("StopStringCutter joined pieces equal the text up to the first occurrence, for any split", () => {
  fc.assert(fc.property(
    fc.array(fc.constantFrom("a", "b", "ab", "aab", "ba"), { maxLength: 12 }),
    fc.constantFrom("aba", "ab", "aab", "bb"),
    (pieces, stop) => {
      const text = pieces.join("");
      const cutter = new StopStringCutter([stop]);
      const released = pieces.map((piece) => cutter.push(piece)).join("");
      const found = text.indexOf(stop);
      const whole = released + cutter.finish(found === -1 ? null : stop);
      assert.equal(whole, found === -1 ? text : text.slice(0, found));
    },
  ));
});

Deno.test("mayBeStopping sees a stop string that has begun, or whose first character is not whole yet", () => {
  assert.ok(mayBeStopping("go </fun", ["</function>"]));
  assert.ok(mayBeStopping("go <", ["x", "</function>"]));
  assert.ok(!mayBeStopping("go </function> on", ["</function>"]), "it is over");
  assert.ok(mayBeStopping("go \ufffd", ["x"]));
  assert.ok(!mayBeStopping("go </funk", ["</function>"]));
  assert.ok(mayBeStopping("</function", ["function>"]));
  assert.ok(!mayBeStopping("go \ufffd", []));
  assert.ok(!mayBeStopping("go", [""]));
  assert.ok(!mayBeStopping("", ["x"]));
});

Deno.test("mayBeStopping is what the cutter would hold back, whole stop strings aside", () => {
  const words = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 8 }).map((letters) => letters.join(""));
  const stops = fc.array(words.filter((word) => word !== ""), { minLength: 1, maxLength: 3 });
  fc.assert(fc.property(words, stops, (text, wanted) => {
    const held = new StopStringCutter(wanted).push(text) !== text;
    if (!wanted.some((stop) => text.includes(stop))) assert.equal(mayBeStopping(text, wanted), held);
  }));
});
