import assert from "node:assert/strict";
import { createFakeClock, eventLoopTurn, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { type Permit, RateLimiter, type RateLimits } from "./rate_limiter.ts";

const never = new AbortController().signal;
const MINUTE_MS = 60_000;

/** A limiter, and the order in which requests got through. */
function limiterOf(limits: Partial<RateLimits>): {
  clock: FakeClock;
  limiter: RateLimiter;
  through: string[];
  permits: Map<string, Permit>;
  ask(name: string, tokens?: number, signal?: AbortSignal): Promise<void>;
} {
  const clock = createFakeClock();
  const limiter = new RateLimiter(
    { requestsPerMinute: Infinity, tokensPerMinute: Infinity, maxConcurrency: Infinity, ...limits },
    clock,
  );
  const through: string[] = [];
  const permits = new Map<string, Permit>();
  return {
    clock,
    limiter,
    through,
    permits,
    async ask(name, tokens = 1, signal = never) {
      permits.set(name, await limiter.acquire(tokens, signal));
      through.push(name);
    },
  };
}

Deno.test("RateLimiter lets so many requests through in any minute, in the order they came", async () => {
  const { clock, through, ask } = limiterOf({ requestsPerMinute: 2 });
  void ask("a");
  await clock.advance(20_000);
  for (const name of ["b", "c", "d", "e"]) void ask(name);
  await eventLoopTurn();
  assert.deepEqual(through, ["a", "b"]);
  await clock.advance(39_999);
  assert.deepEqual(through, ["a", "b"]);
  await clock.advance(1);
  assert.deepEqual(through, ["a", "b", "c"]);
  await clock.advance(20_000);
  assert.deepEqual(through, ["a", "b", "c", "d"]);
  await clock.advance(40_000);
  assert.deepEqual(through, ["a", "b", "c", "d", "e"]);
});

Deno.test("RateLimiter lets so many tokens through in any minute, as they were counted in the end", async () => {
  const { clock, through, permits, ask } = limiterOf({ tokensPerMinute: 100 });
  await ask("a", 60);
  void ask("b", 60);
  await eventLoopTurn();
  assert.deepEqual(through, ["a"]);
  permits.get("a")?.settle(30);
  await clock.advance(MINUTE_MS);
  assert.deepEqual(through, ["a", "b"]);
  permits.get("b")?.settle(30);
  await ask("c", 60);
  assert.deepEqual(through, ["a", "b", "c"]);
});

Deno.test("RateLimiter lets a request larger than a minute's tokens through alone", async () => {
  const { clock, through, ask } = limiterOf({ tokensPerMinute: 100 });
  await ask("small", 1);
  void ask("large", 1000);
  await clock.advance(MINUTE_MS - 1);
  assert.deepEqual(through, ["small"]);
  await clock.advance(1);
  assert.deepEqual(through, ["small", "large"]);
});

Deno.test("RateLimiter runs so many at once, and an ended one makes room once", async () => {
  const { through, permits, ask } = limiterOf({ maxConcurrency: 2 });
  for (const name of ["a", "b", "c", "d"]) void ask(name);
  await eventLoopTurn();
  assert.deepEqual(through, ["a", "b"]);
  permits.get("a")?.[Symbol.dispose]();
  permits.get("a")?.[Symbol.dispose]();
  await eventLoopTurn();
  assert.deepEqual(through, ["a", "b", "c"]);
  permits.get("b")?.[Symbol.dispose]();
  await eventLoopTurn();
  assert.deepEqual(through, ["a", "b", "c", "d"]);
});

Deno.test("RateLimiter passes over who gave up waiting, and keeps the order of the others", async () => {
  const { clock, through, permits, ask } = limiterOf({ maxConcurrency: 1 });
  const gone = new AbortController();
  await ask("a");
  const given = assert.rejects(ask("b", 1, gone.signal), { name: "AbortError" });
  void ask("c");
  gone.abort();
  await given;
  await eventLoopTurn();
  assert.deepEqual(through, ["a"]);
  permits.get("a")?.[Symbol.dispose]();
  await eventLoopTurn();
  assert.deepEqual(through, ["a", "c"]);
  await assert.rejects(ask("d", 1, AbortSignal.abort(new Error("gone"))), /gone/);
  assert.equal(clock.sleeping, 0);
});

Deno.test("RateLimiter holds everything back until the time it was told", async () => {
  const { clock, limiter, through, ask } = limiterOf({});
  limiter.holdUntil(clock.now() + 5000);
  limiter.holdUntil(clock.now() + 1000);
  void ask("a");
  void ask("b");
  await clock.advance(4999);
  assert.deepEqual(through, []);
  await clock.advance(1);
  assert.deepEqual(through, ["a", "b"]);
});
