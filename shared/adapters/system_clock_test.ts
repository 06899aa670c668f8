import assert from "node:assert/strict";
import { eventLoopTurn } from "../../tests/fixtures/fake_clock.ts";
import { systemClock } from "./system_clock.ts";

Deno.test("systemClock.now is the host's time in epoch milliseconds", () => {
  const before = Date.now();
  const now = systemClock.now();
  assert.ok(before <= now && now <= Date.now());
});

Deno.test("systemClock.sleep resolves after its time, in the order of times", async () => {
  const woken: number[] = [];
  await Promise.all([20, 1, 0].map((ms) => systemClock.sleep(ms).then(() => woken.push(ms))));
  assert.equal(woken.at(-1), 20);
});

Deno.test("systemClock.sleep rejects with the signal's reason and leaves no timer", async () => {
  const reason = new Error("enough");
  const controller = new AbortController();
  const sleeping = systemClock.sleep(60_000, controller.signal);
  controller.abort(reason);
  await assert.rejects(sleeping, reason);
  await assert.rejects(systemClock.sleep(0, AbortSignal.abort(reason)), reason);
});

Deno.test("systemClock.sleep is not disturbed by an abort that comes too late", async () => {
  const controller = new AbortController();
  await systemClock.sleep(0, controller.signal);
  controller.abort(new Error("late"));
  await eventLoopTurn();
});

Deno.test("systemClock.sleep sleeps longer than a host's timer can count", async () => {
  const controller = new AbortController();
  let woken = false;
  const sleeping = systemClock.sleep(2 ** 31, controller.signal).then(() => woken = true);
  await systemClock.sleep(20);
  assert.equal(woken, false);
  controller.abort(new Error("enough"));
  await assert.rejects(sleeping, { message: "enough" });
});
