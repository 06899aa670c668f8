import assert from "node:assert/strict";
import type { VersionSegment } from "./turn.ts";
import { addSegments } from "./version_segments.ts";

function segment(version: string | null, start: number, end: number, exact = true): VersionSegment {
  return { version, start, end, exact };
}

Deno.test("addSegments moves segments behind those there are, and joins neighbours that say the same", () => {
  const segments = [segment("1", 0, 3)];
  addSegments(segments, [segment("1", 0, 2), segment("2", 2, 4)], 5);
  addSegments(segments, [], 9);
  addSegments(segments, [segment("2", 0, 0), segment("2", 0, 1, false)], 9);
  assert.deepEqual(segments, [segment("1", 0, 7), segment("2", 7, 9), segment("2", 9, 10, false)]);
});
