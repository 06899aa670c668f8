import assert from "node:assert/strict";
import { hindsight, type Step } from "./hindsight.ts";

/**
 * Steps in words: `P` names the prompt; `P<3` goes on from step 3 by its echo, `P!3` without one; a trailing `-` failed,
 * `=2` was answered with the reply of step 2.
 */
function fates(...words: string[]): string[] {
  const steps = words.map((word, entry): Step => {
    const [, prompt = "", how, from, failed, again] = /^(\w+)(?:([<!])(\d+))?(-)?(?:=(\d+))?$/.exec(word) ?? [];
    return {
      entry,
      prompt,
      follows: from === undefined ? null : { entry: Number(from), accepted: how === "<" },
      served: failed !== undefined ? null : again === undefined ? entry : Number(again),
    };
  });
  const { fates: found } = hindsight(steps);
  return steps.map(({ entry }) => {
    const fate = found.get(entry)!;
    return fate.type === "left" ? `left ${fate.from}` : fate.type;
  });
}

Deno.test("hindsight passes a history that only grows", () => {
  assert.deepEqual(fates("A", "B<0", "C<1"), ["ok", "ok", "ok"]);
  assert.deepEqual(fates("A", "A", "B<0", "B<0", "C<3"), ["ok", "replay", "ok", "replay", "ok"]);
});

Deno.test("hindsight takes a departure as the last thing that happened for a violation", () => {
  assert.deepEqual(fates("A", "B<0", "C<1", "B<0"), ["ok", "ok", "ok", "left 2"]);
  assert.deepEqual(fates("A", "B<0", "C<0"), ["ok", "ok", "left 1"]);
  assert.deepEqual(fates("A", "B!0"), ["ok", "left 0"]);
  assert.deepEqual(fates("A", "X"), ["ok", "left 0"]);
});

Deno.test("hindsight sets aside what left the series and came to nothing", () => {
  assert.deepEqual(fates("A", "X", "B<0"), ["ok", "side", "ok"]);
  assert.deepEqual(fates("A", "B<0", "X!1", "Y!1", "C<1"), ["ok", "ok", "side", "side", "ok"]);
  assert.deepEqual(
    fates("A", "X", "Y<1", "Z<2", "B<0"),
    ["ok", "side", "side", "side", "ok"],
    "a conversation of its own",
  );
  assert.deepEqual(fates("A", "B<0", "A", "C<1"), ["ok", "ok", "side", "ok"], "a late retry");
  assert.deepEqual(fates("A", "X", "X", "Y"), ["ok", "side", "side", "left 0"]);
});

Deno.test("hindsight lets the series go back to an earlier point where it grows again from there", () => {
  assert.deepEqual(fates("A", "B<0", "C<0", "D<2"), ["ok", "side", "ok", "ok"]);
  assert.deepEqual(fates("A", "B<0", "C<1", "B<0", "D<3"), ["ok", "ok", "side", "replay", "ok"]);
  assert.deepEqual(fates("A", "B<0", "C<1", "B<0=1", "D<1"), ["ok", "ok", "side", "replay", "ok"], "a replayed reply");
  assert.deepEqual(fates("A", "B<0", "C<1", "A", "B<3", "C<4", "D<5"), [
    "ok",
    "side",
    "side",
    "replay",
    "ok",
    "ok",
    "ok",
  ]);
});

Deno.test("hindsight makes the request that leaves for good the series", () => {
  assert.deepEqual(fates("A", "B<0", "X!0", "Y<2"), ["ok", "ok", "left 1", "ok"]);
  assert.deepEqual(fates("A", "B<0", "X", "Y<2", "P", "Q<4"), ["ok", "ok", "left 1", "ok", "left 3", "ok"]);
  assert.deepEqual(
    fates("A", "B<0", "X", "B2<0", "Y<2"),
    ["ok", "ok", "left 1", "side", "ok"],
    "the old line comes to nothing",
  );
});

Deno.test("hindsight leaves the series where it was when a request fails", () => {
  assert.deepEqual(fates("A-", "A", "B<1"), ["ok", "replay", "ok"]);
  assert.deepEqual(fates("A", "B<0-", "B<0", "C<2"), ["ok", "ok", "replay", "ok"]);
  assert.deepEqual(fates("A", "B<0-"), ["ok", "ok"]);
  assert.deepEqual(fates("A", "B<0", "C<1-", "X", "Y<3"), ["ok", "ok", "ok", "left 1", "ok"]);
});
