import assert from "node:assert/strict";
import { createFakeClock, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { PauseMarks } from "./pause_marks.ts";
import { type Hold, SilenceWatch } from "./silence_watch.ts";

const never = new AbortController().signal;

/** Whether no pause is on, without the clock going on. */
async function isOver(hold: Hold, clock: FakeClock): Promise<boolean> {
  const waiting = new AbortController();
  let over = false;
  const wait = hold.lifted(waiting.signal).then(() => over = true, () => {});
  await clock.advance(0);
  waiting.abort();
  await wait;
  return over;
}

Deno.test("PauseMarks tells of one worker's pause, and of any worker's where nobody knows which one has the call", async () => {
  const clock = createFakeClock();
  const marks = new PauseMarks(clock);
  const [a, b, any] = [marks.of("a"), marks.of("b"), marks.of(null)];
  assert.deepEqual([await isOver(a, clock), await isOver(any, clock)], [true, true]);
  marks.mark("a", "pause");
  assert.deepEqual([await isOver(a, clock), await isOver(b, clock), await isOver(any, clock)], [false, true, false]);
  await clock.advance(10);
  marks.lift("a", "pause");
  assert.deepEqual([await isOver(a, clock), await isOver(any, clock)], [true, true]);
  assert.deepEqual([a.liftedAtMs, b.liftedAtMs, any.liftedAtMs], [clock.now(), 0, clock.now()]);
  assert.equal(clock.sleeping, 0);
});

Deno.test("PauseMarks holds a worker for as long as any reason stands", async () => {
  const clock = createFakeClock();
  const marks = new PauseMarks(clock);
  const hold = marks.of("a");
  marks.mark("a", "pause");
  marks.mark("a", "update");
  let over = false;
  const wait = hold.lifted(never).then(() => over = true);
  marks.lift("a", "update");
  await clock.advance(1);
  assert.equal(over, false);
  marks.lift("a", "pause");
  await wait;
  marks.lift("a", "pause");
  assert.equal(clock.sleeping, 0);
});

Deno.test("PauseMarks ends a pause by itself whose end nobody told", async () => {
  const clock = createFakeClock();
  const marks = new PauseMarks(clock);
  marks.mark("a", "pause");
  let over = false;
  const wait = marks.of("a").lifted(never).then(() => over = true);
  await clock.advance(3_599_999);
  assert.equal(over, false);
  await clock.advance(1);
  await wait;
});

Deno.test("a pause does not count as silence, however long; the silence after it does", async () => {
  const clock = createFakeClock();
  const marks = new PauseMarks(clock);
  const watch = new SilenceWatch(clock, 5000, marks.of("a"));
  await clock.advance(4000);
  marks.mark("a", "pause");
  await clock.advance(600_000);
  assert.equal(watch.signal.aborted, false);
  marks.lift("a", "pause");
  await clock.advance(4999);
  assert.equal(watch.signal.aborted, false);
  await clock.advance(1);
  assert.ok(watch.signal.aborted);
  assert.equal(clock.sleeping, 0);
});

Deno.test("a call that is over while its worker is paused leaves no timer", async () => {
  const clock = createFakeClock();
  const marks = new PauseMarks(clock);
  const watch = new SilenceWatch(clock, 5000, marks.of("a"));
  marks.mark("a", "pause");
  await clock.advance(10_000);
  watch.end();
  await clock.advance(0);
  assert.equal(clock.sleeping, 0);
  assert.equal(watch.signal.aborted, false);
});
