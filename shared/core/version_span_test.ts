import assert from "node:assert/strict";
import fc from "fast-check";
import { turnsBeyondSpan } from "./version_span.ts";

/** A turn whose tokens these versions sampled. */
function turn(parent: number | null, ...versions: (string | null)[]) {
  const weightVersions = versions.map((version, start) => ({ version, start, end: start + 1, exact: true }));
  return { actor: "policy" as const, parent, weightVersions };
}

Deno.test("turnsBeyondSpan is of the turns from which on a path spans too many versions", () => {
  const turns = [
    turn(null, "1"),
    turn(0, "1", "2"),
    turn(1, "2"),
    turn(2, "3"),
    turn(3, "1"),
    turn(0, "3"),
    turn(null, "4"),
  ];
  assert.deepEqual([...turnsBeyondSpan(turns, 1)], [1, 2, 3, 4, 5]);
  assert.deepEqual([...turnsBeyondSpan(turns, 2)], [3, 4]);
  assert.deepEqual([...turnsBeyondSpan(turns, 3)], []);
  assert.deepEqual([...turnsBeyondSpan(turns, null)], []);
  assert.deepEqual([...turnsBeyondSpan([turn(null, "1", "2")], 1)], [0], "one turn alone may span too many");
  const guided = [turn(null, "1"), { actor: "teacher" as const, parent: 0, weightVersions: [] }, turn(1, "2"), {
    actor: "teacher" as const,
    parent: 2,
    weightVersions: [],
  }];
  assert.deepEqual([...turnsBeyondSpan(guided, 1)], [2], "a teacher's turns are never stale");
  assert.deepEqual(
    [...turnsBeyondSpan([turn(null), turn(0, null), turn(1, "1")], 1)],
    [2],
    "no version is one of its own",
  );
});

Deno.test("turnsBeyondSpan agrees with counting each path by itself", () => {
  const forest = fc.array(
    fc.record({ back: fc.nat(3), versions: fc.array(fc.constantFrom("1", "2", "3"), { maxLength: 2 }) }),
    {
      maxLength: 12,
    },
  );
  fc.assert(fc.property(forest, fc.integer({ min: 1, max: 3 }), (made, limit) => {
    const turns = made.map(({ back, versions }, at) => turn(back === 0 || back > at ? null : at - back, ...versions));
    const beyond = turnsBeyondSpan(turns, limit);
    turns.forEach((_, at) => {
      const versions = new Set<string | null>();
      for (let node: number | null = at; node !== null; node = turns[node]!.parent) {
        for (const { version } of turns[node]!.weightVersions) versions.add(version);
      }
      assert.equal(beyond.has(at), versions.size > limit);
    });
  }));
});
