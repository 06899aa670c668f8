import assert from "node:assert/strict";
import { createFakeClock, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { type CallOutcome, CircuitBreaker } from "./circuit_breaker.ts";

function opened(clock: FakeClock): CircuitBreaker {
  const breaker = new CircuitBreaker(clock);
  for (let k = 0; k < 3; k++) breaker.begin()("fault");
  return breaker;
}

Deno.test("CircuitBreaker opens after faults in a row, and after nothing else", () => {
  const cases: [CallOutcome[], string][] = [
    [["fault", "fault"], "closed"],
    [["fault", "fault", "fault"], "open"],
    [["fault", "fault", "served", "fault", "fault"], "closed"],
    [["fault", "fault", "left", "fault"], "open"],
    [["left", "left", "left", "left"], "closed"],
    [["served", "served", "served", "served"], "closed"],
  ];
  for (const [outcomes, state] of cases) {
    const breaker = new CircuitBreaker(createFakeClock());
    for (const outcome of outcomes) breaker.begin()(outcome);
    assert.deepEqual([breaker.state, breaker.takesCalls], [state, state === "closed"], outcomes.join());
  }
});

Deno.test("CircuitBreaker lets one call at a time try whether the worker is back", async () => {
  const clock = createFakeClock();
  const breaker = opened(clock);
  await clock.advance(999);
  assert.equal(breaker.state, "open");
  await clock.advance(1);
  assert.deepEqual([breaker.state, breaker.takesCalls], ["half_open", true]);
  const probe = breaker.begin();
  assert.deepEqual([breaker.state, breaker.takesCalls], ["half_open", false]);
  probe("left");
  assert.deepEqual([breaker.state, breaker.takesCalls], ["half_open", true], "the next one finds out");
  breaker.begin()("served");
  assert.deepEqual([breaker.state, breaker.takesCalls], ["closed", true]);
});

Deno.test("CircuitBreaker waits longer after each probe that fails, up to half a minute, and begins anew once closed", async () => {
  const clock = createFakeClock();
  const breaker = opened(clock);
  for (const ms of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    assert.equal(breaker.probeAtMs - clock.now(), ms);
    await clock.advance(ms);
    breaker.begin()("fault");
    assert.equal(breaker.state, "open");
  }
  await clock.advance(30_000);
  breaker.begin()("served");
  for (let k = 0; k < 3; k++) breaker.begin()("fault");
  assert.equal(breaker.probeAtMs - clock.now(), 1000);
});

Deno.test("CircuitBreaker is opened no longer by calls that had begun before it opened", async () => {
  const clock = createFakeClock();
  const breaker = new CircuitBreaker(clock);
  const calls = Array.from({ length: 10 }, () => breaker.begin());
  for (const settle of calls.slice(0, 3)) settle("fault");
  const { probeAtMs } = breaker;
  for (const settle of calls.slice(3, 9)) settle("fault");
  assert.equal(breaker.probeAtMs, probeAtMs);
  calls[9]!("served");
  assert.equal(breaker.state, "closed", "it serves");
  calls[9]!("fault");
  await clock.advance(0);
  assert.equal(breaker.state, "closed", "an outcome counts once");
});
