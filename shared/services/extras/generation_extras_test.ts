import assert from "node:assert/strict";
import type { Experts } from "../../core/extra_arrays.ts";
import type { EngineExtras } from "../../ports/engine.ts";
import { GenerationExtras } from "./generation_extras.ts";

const ALL = { expertsFrom: 4, topPIds: true, specInfo: true } as const;
const SPEC = { acceptedTokens: 2, draftTokens: 6, verifications: 3 };

function experts(start: number, rows: number): Experts {
  return { start, rows, bytes: new Uint8Array(Int32Array.from({ length: rows }, (_, row) => start + row).buffer) };
}

function said(start: number, rows: number, tokens: number): EngineExtras {
  const topPIds = {
    offsets: Int32Array.from({ length: tokens + 1 }, (_, at) => at),
    ids: Int32Array.from({ length: tokens }, (_, at) => start + at),
  };
  return { experts: experts(start, rows), topPIds, specInfo: SPEC };
}

Deno.test("GenerationExtras asks for nothing where nothing is wanted", () => {
  const extras = new GenerationExtras();
  assert.equal(extras.ask(), null);
  extras.add({ extras: undefined, sampled: 3, aborted: false });
  assert.deepEqual(extras.result(), {});
});

Deno.test("GenerationExtras goes on after an abort where the last call ended, and puts the parts together", () => {
  const extras = new GenerationExtras(ALL);
  assert.deepEqual(extras.ask(), ALL);
  // 10 prompt tokens, 3 sampled: positions 4 to 11.
  extras.add({ extras: said(4, 8, 3), sampled: 3, aborted: true });
  assert.deepEqual(extras.ask(), { ...ALL, expertsFrom: 12 });
  extras.add({ extras: said(12, 2, 2), sampled: 2, aborted: false });
  const result = extras.result();
  assert.deepEqual(result.experts, experts(4, 10));
  assert.deepEqual(result.topPIds, { offsets: Int32Array.of(0, 1, 2, 3, 4, 5), ids: Int32Array.of(4, 5, 6, 12, 13) });
  assert.deepEqual(result.specInfo, { acceptedTokens: 4, draftTokens: 12, verifications: 6 });
});

Deno.test("GenerationExtras lacks for good what a part was sampled without, and asks no more for it", () => {
  const extras = new GenerationExtras(ALL);
  extras.add({ extras: undefined, sampled: 3, aborted: true });
  assert.equal(extras.ask(), null);
  extras.add({ extras: undefined, sampled: 2, aborted: false });
  const interrupted = { missing: "interrupted" };
  assert.deepEqual(extras.result(), { experts: interrupted, topPIds: interrupted, specInfo: interrupted });
});

Deno.test("GenerationExtras loses nothing with a call that sampled nothing", () => {
  const extras = new GenerationExtras(ALL);
  extras.add({ extras: undefined, sampled: 0, aborted: true });
  assert.deepEqual(extras.ask(), ALL);
  extras.add({ extras: said(4, 8, 3), sampled: 3, aborted: false });
  assert.deepEqual(extras.result(), said(4, 8, 3));
});

Deno.test("GenerationExtras says why one is missing, and joins nothing that does not fit", () => {
  const extras = new GenerationExtras({ expertsFrom: 0, specInfo: true });
  extras.add({ extras: { experts: experts(0, 4), specInfo: { missing: "dropped" } }, sampled: 2, aborted: false });
  assert.deepEqual(extras.result(), { experts: experts(0, 4), specInfo: { missing: "dropped" } });
  extras.add({ extras: { experts: experts(5, 1) }, sampled: 1, aborted: false });
  assert.deepEqual(extras.result().experts, { missing: "inconsistent" });
});
