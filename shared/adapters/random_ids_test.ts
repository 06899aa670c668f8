import assert from "node:assert/strict";
import { createFakeClock } from "../../tests/fixtures/fake_clock.ts";
import { createRandomIds } from "./random_ids.ts";

Deno.test("createRandomIds makes version 4 UUIDs without dashes, and as many hex digits as asked for", () => {
  const ids = createRandomIds(createFakeClock());
  assert.match(ids.uuid(), /^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$/);
  for (const digits of [0, 1, 2, 7, 24]) assert.match(ids.hex(digits), new RegExp(`^[0-9a-f]{${digits}}$`));
  const made = [() => ids.uuid(), () => ids.hex(24), () => ids.ulid()].flatMap((make) =>
    Array.from({ length: 1000 }, make)
  );
  assert.equal(new Set(made).size, 3000);
});

Deno.test("createRandomIds makes ulids that begin with the time", () => {
  const ulid = createRandomIds(createFakeClock(1_469_918_176_385)).ulid();
  assert.match(ulid, /^01ARYZ6S41[0-9A-HJKMNP-TV-Z]{16}$/);
});

Deno.test("createRandomIds makes ulids that sort by time, then by order, and never go back with the clock", () => {
  const times = [5, 5, 5, 9, 3, 3, 12, 12, 11, 13];
  let at = 0;
  const ids = createRandomIds({ now: () => times[at] ?? 13, sleep: () => Promise.resolve() });
  const ulids: string[] = [];
  for (; at < times.length; at++) ulids.push(ids.ulid(), ids.ulid());
  assert.deepEqual(ulids.toSorted(), ulids);
  assert.equal(new Set(ulids).size, ulids.length);
});

Deno.test("createRandomIds makes ulids in order however many one millisecond needs", () => {
  const ids = createRandomIds(createFakeClock());
  let last = ids.ulid();
  for (let made = 0; made < 2 ** 20 + 10; made++) {
    const next = ids.ulid();
    if (next <= last) assert.fail(`${next} does not come after ${last}`);
    last = next;
  }
});
