import assert from "node:assert/strict";
import { createFakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { PgSlots } from "./pg_slots.ts";

Deno.test("PgSlots runs so many at once, the others in their order", async () => {
  const slots = new PgSlots(createFakeClock(), { slots: 2, maxWaiting: 10 });
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const runs = [0, 1, 2, 3].map((index) =>
    slots.run(1_000, () => {
      begun.push(index);
      return new Promise<void>((resolve) => ends.push(resolve));
    })
  );
  await turn();
  assert.deepEqual(begun, [0, 1]);
  ends[1]!();
  await turn();
  assert.deepEqual(begun, [0, 1, 2]);
  ends[0]!();
  await turn();
  assert.deepEqual(begun, [0, 1, 2, 3]);
  for (const end of ends) end();
  await Promise.all(runs);
});

Deno.test("PgSlots frees the slot of work that fails", async () => {
  const slots = new PgSlots(createFakeClock(), { slots: 1, maxWaiting: 1 });
  await assert.rejects(slots.run(0, () => Promise.reject(new Error("failed"))), { message: "failed" });
  assert.equal(await slots.run(0, () => Promise.resolve(7)), 7);
});

Deno.test("PgSlots ends a wait at its deadline, and the slot goes to the next", async () => {
  const clock = createFakeClock();
  const slots = new PgSlots(clock, { slots: 1, maxWaiting: 2 });
  const { promise, resolve } = Promise.withResolvers<string>();
  const holding = slots.run(0, () => promise);
  const late = slots.run(100, () => Promise.resolve("late"));
  const patient = slots.run(200, () => Promise.resolve("patient"));
  const refused = assert.rejects(late, { code: "not_ready", retryAfterS: 1, message: /came free for 100 ms/ });
  await assert.rejects(slots.run(200, () => Promise.resolve("third")), { code: "not_ready", message: /2 statements/ });
  await clock.advance(150);
  await refused;
  resolve("held");
  assert.deepEqual(await Promise.all([holding, patient]), ["held", "patient"]);
  assert.equal(clock.sleeping, 0);
});

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
