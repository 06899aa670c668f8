import assert from "node:assert/strict";
import fc from "fast-check";
import { spyOnKv } from "../../../tests/contracts/kv_spy.ts";
import { createFakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { KvCommitQueue } from "./kv_commit_queue.ts";
import { DEFAULT_KV_LIMITS, type KvLimits } from "./kv_limits.ts";

function queueOver(kv: Deno.Kv, limits: Partial<KvLimits> = {}): KvCommitQueue {
  const clock = { now: () => 0, sleep: () => new Promise<void>((resolve) => setTimeout(resolve, 0)) };
  return new KvCommitQueue(kv, {
    limits: { ...DEFAULT_KV_LIMITS, ...limits },
    retry: { clock, random: () => 0.5, busyDeadlineMs: 1_000 },
  });
}

Deno.test("KvCommitQueue keeps the order of writes with a common claim, and every limit, whatever fails", async () => {
  const plan = fc.array(
    fc.record({
      claims: fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { minLength: 1, maxLength: 2 }),
      check: fc.constantFrom("none", "holds", "fails"),
      bytes: fc.integer({ min: 0, max: 300 }),
      mayLinger: fc.boolean(),
    }),
    { maxLength: 40 },
  );
  const failures = fc.infiniteStream(fc.constantFrom("", "", "", "database is locked", "batch transaction failed"));
  await fc.assert(
    fc.asyncProperty(plan, failures, fc.integer({ min: 1, max: 4 }), async (writes, errors, maxCommits) => {
      const spy = spyOnKv(await Deno.openKv(":memory:"));
      spy.onCommit = async () => {
        const message = errors.next().value;
        await Promise.resolve();
        if (message) throw new TypeError(message);
      };
      const queue = queueOver(spy.kv, {
        maxCommits,
        maxChecks: 3,
        maxMutations: 5,
        maxAtomicBytes: 1_000,
        maxKeyBytes: 200,
      });
      const versions = await Promise.all(writes.map(({ claims, check, bytes, mayLinger }, index) =>
        queue.commit({
          checks: check === "none"
            ? []
            : [{ key: ["absent"], versionstamp: check === "holds" ? null : "0".repeat(20) }],
          sets: claims.map((claim) => ({
            key: ["last", claim],
            value: Uint8Array.of(index, ...new Uint8Array(bytes)),
            expireInMs: 60_000,
          })),
          deletes: [["deleted", index]],
          claims,
        }, { mayLinger })
      ));
      for (const [index, { check }] of writes.entries()) assert.equal(versions[index] === null, check === "fails");
      for (const { checks, sets, deletes } of spy.commits) {
        assert.ok(checks.length <= 3 && sets.length + deletes.length <= 5);
        assert.ok(sets.reduce((sum, { bytes }) => sum + bytes, 0) <= 1_000);
      }
      for (const claim of ["a", "b", "c", "d"] as const) {
        const last = writes.findLastIndex(({ claims, check }) => claims.includes(claim) && check !== "fails");
        const { value } = await spy.kv.get<Uint8Array>(["last", claim]);
        assert.equal(value?.[0], last === -1 ? undefined : last);
      }
      spy.kv.close();
    }),
    { numRuns: 60 },
  );
});

Deno.test("KvCommitQueue never has two writes with a common claim under way", async () => {
  const spy = spyOnKv(await Deno.openKv(":memory:"));
  const queue = queueOver(spy.kv);
  const underWay = new Set<string>();
  spy.onCommit = async ({ sets }) => {
    const claims = sets.map(({ key }) => String(key[1]));
    assert.equal(new Set(claims).size, claims.length);
    for (const claim of claims) assert.ok(!underWay.has(claim));
    for (const claim of claims) underWay.add(claim);
    await new Promise((resolve) => setTimeout(resolve, 0));
    for (const claim of claims) underWay.delete(claim);
  };
  await Promise.all(Array.from({ length: 60 }, (_, index) => {
    const claim = `claim ${index % 7}`;
    const set = { key: ["last", claim], value: Uint8Array.of(index), expireInMs: undefined };
    return queue.commit({ checks: [], sets: [set], deletes: [], claims: [claim] });
  }));
  assert.ok(spy.commits.length < 60);
  spy.kv.close();
});

Deno.test("KvCommitQueue lets a write that may linger go with the next one, and alone when none comes", async () => {
  const spy = spyOnKv(await Deno.openKv(":memory:"));
  const clock = createFakeClock();
  const limits = { ...DEFAULT_KV_LIMITS, lingerMs: 20 };
  const queue = new KvCommitQueue(spy.kv, { limits, retry: { clock, random: () => 0.5, busyDeadlineMs: 1_000 } });
  const setOf = (name: string) => ({
    checks: [],
    sets: [{ key: [name], value: Uint8Array.of(1), expireInMs: undefined }],
    deletes: [],
    claims: [],
  });
  const namesOf = () => spy.commits.map(({ sets }) => sets.map(({ key }) => key[0]));

  const first = queue.commit(setOf("patient"), { mayLinger: true });
  await clock.advance(19);
  assert.deepEqual(namesOf(), []);
  await queue.commit(setOf("urgent"));
  await first;
  assert.deepEqual(namesOf(), [["patient", "urgent"]]);

  await clock.advance(1);
  const alone = queue.commit(setOf("alone"), { mayLinger: true });
  const second = queue.commit(setOf("second"), { mayLinger: true });
  await clock.advance(20);
  await Promise.all([alone, second]);
  assert.deepEqual(namesOf().slice(1), [["alone", "second"]]);
  assert.equal(clock.sleeping, 0);
  spy.kv.close();
});

Deno.test("KvCommitQueue refuses a write that no atomic write can hold", async () => {
  const kv = await Deno.openKv(":memory:");
  const queue = queueOver(kv, { maxAtomicBytes: 100, maxMutations: 3, maxChecks: 1 });
  const set = { key: ["a"], value: new Uint8Array(101), expireInMs: undefined };
  const check = { key: ["a"], versionstamp: null };
  const empty = { checks: [], sets: [], deletes: [], claims: [] };
  await assert.rejects(queue.commit({ ...empty, sets: [set] }), { code: "internal" });
  await assert.rejects(queue.commit({ ...empty, deletes: [["a"], ["b"], ["c"], ["d"]] }), { code: "internal" });
  await assert.rejects(queue.commit({ ...empty, checks: [check, check] }), { code: "internal" });
  assert.notEqual(await queue.commit({ ...empty, checks: [check] }), null);
  kv.close();
});
