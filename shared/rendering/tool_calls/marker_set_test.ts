import assert from "node:assert/strict";
import { MarkerSet } from "./marker_set.ts";

Deno.test("MarkerSet finds the first literal, and of two at one place the longer", () => {
  const markers = new MarkerSet(["[", "[TOOL_CALLS]", "<|a|>"]);
  assert.deepEqual(markers.find("x<|a|>[", 0), { literal: "<|a|>", index: 1 });
  assert.deepEqual(markers.find("x<|a|>[TOOL_CALLS]", 2), { literal: "[TOOL_CALLS]", index: 6 });
  assert.equal(markers.find("plain (text)", 0), null);
});

Deno.test("MarkerSet tells where the end of a text may be the beginning of a literal", () => {
  const markers = new MarkerSet(["<tool>", "</tool>"]);
  assert.equal(markers.openEnd("a <to", 0), 2);
  assert.equal(markers.openEnd("a <<", 0), 3);
  assert.equal(markers.openEnd("a <x", 0), 4);
  assert.equal(markers.openEnd("<to", 1), 3);
  assert.ok(markers.opensAt("a </too", 2));
  assert.ok(!markers.opensAt("a <tool>", 2));
});

Deno.test("MarkerSet of nothing finds nothing", () => {
  const markers = new MarkerSet([]);
  assert.equal(markers.find("<", 0), null);
  assert.equal(markers.openEnd("<", 0), 1);
});
