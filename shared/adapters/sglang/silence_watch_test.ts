import assert from "node:assert/strict";
import { createFakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { SilenceWatch } from "./silence_watch.ts";

Deno.test("SilenceWatch aborts after the longest silence, not before, and names it", async () => {
  const clock = createFakeClock();
  const watch = new SilenceWatch(clock, 5000);
  await clock.advance(4999);
  assert.equal(watch.signal.aborted, false);
  await clock.advance(1);
  assert.throws(() => watch.signal.throwIfAborted(), {
    kind: "silent",
    message: "The engine was silent for 5 s",
    details: { idle_timeout_s: 5 },
  });
  assert.equal(clock.sleeping, 0);
});

Deno.test("SilenceWatch counts from what was heard last, with one timer at a time", async () => {
  const clock = createFakeClock();
  const watch = new SilenceWatch(clock, 5000);
  for (let heard = 0; heard < 20; heard++) {
    await clock.advance(4000);
    watch.heard();
    assert.equal(clock.sleeping, 1);
  }
  await clock.advance(4999);
  assert.equal(watch.signal.aborted, false);
  await clock.advance(1);
  assert.ok(watch.signal.aborted);
});

Deno.test("SilenceWatch.end leaves no timer and aborts nothing", async () => {
  const clock = createFakeClock();
  const watch = new SilenceWatch(clock, 5000);
  watch.end();
  await clock.advance(10_000);
  assert.equal(watch.signal.aborted, false);
  assert.equal(clock.sleeping, 0);
});
