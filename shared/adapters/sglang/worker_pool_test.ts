import assert from "node:assert/strict";
import { createFakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { rendezvousOrder } from "./rendezvous_hash.ts";
import { WorkerPool } from "./worker_pool.ts";

const URLS = ["http://a", "http://b", "http://c"];

/** Breaks this worker's circuit: only it is left to take the calls. */
function breakOf(pool: WorkerPool, url: string, urls: readonly string[] = URLS): void {
  const key = keyOf(url, urls);
  for (let k = 0; k < 3; k++) {
    const lease = pool.take(key);
    assert.equal(lease.url, url);
    lease.done("fault");
  }
}

/** A key whose own worker this is. */
function keyOf(url: string, urls: readonly string[] = URLS): string {
  for (let k = 0;; k++) if (rendezvousOrder(`k${k}`, urls)[0] === url) return `k${k}`;
}

Deno.test("take gives a key the same worker again and again, and counts what it serves", () => {
  const pool = new WorkerPool(URLS, createFakeClock());
  const leases = Array.from({ length: 7 }, () => pool.take("task"));
  const [url] = rendezvousOrder("task", URLS);
  assert.ok(leases.every((lease) => lease.url === url));
  assert.deepEqual(pool.standing(url!), { circuit: "closed", inFlight: 7 });
  for (const lease of leases) lease.done("served");
  leases[0]!.done("served");
  assert.deepEqual(pool.standing(url!), { circuit: "closed", inFlight: 0 });
  assert.equal(pool.standing("http://d"), null);
});

Deno.test("take without a key gives the least loaded, in turn where they are equal", () => {
  const pool = new WorkerPool(URLS, createFakeClock());
  const leases = Array.from({ length: 6 }, () => pool.take(null));
  assert.deepEqual(leases.map(({ url }) => url), [...URLS, ...URLS]);
  leases[1]!.done("served");
  assert.equal(pool.take(null).url, URLS[1]);
});

Deno.test("take gives an overloaded worker's key to the least loaded: from 8 calls on, at twice the others' average", () => {
  const pool = new WorkerPool(URLS, createFakeClock());
  const key = keyOf("http://b");
  for (let k = 0; k < 8; k++) assert.equal(pool.take(key).url, "http://b");
  assert.notEqual(pool.take(key).url, "http://b");
  // The others have 9 in all: 8 is less than twice 4.5.
  const loaded = new WorkerPool(URLS, createFakeClock());
  for (let k = 0; k < 9; k++) loaded.take(keyOf(k % 2 === 0 ? "http://a" : "http://c"));
  for (let k = 0; k < 9; k++) assert.equal(loaded.take(key).url, "http://b");
  assert.notEqual(loaded.take(key).url, "http://b");
});

Deno.test("take moves only the keys of a worker whose circuit is open, and gives them back", async () => {
  const clock = createFakeClock();
  const pool = new WorkerPool(URLS, clock);
  breakOf(pool, "http://a");
  assert.equal(pool.standing("http://a")?.circuit, "open");
  for (let k = 0; k < 50; k++) {
    const order = rendezvousOrder(`task-${k}`, URLS).filter((url) => url !== "http://a");
    const lease = pool.take(`task-${k}`);
    assert.equal(lease.url, order[0]);
    lease.done("served");
  }
  await clock.advance(1000);
  const probe = pool.take(keyOf("http://a"));
  assert.deepEqual([probe.url, pool.standing("http://a")?.circuit], ["http://a", "half_open"]);
  assert.notEqual(pool.take(keyOf("http://a")).url, "http://a", "one probe at a time");
  probe.done("served");
  assert.equal(pool.take(keyOf("http://a")).url, "http://a");
});

Deno.test("take avoids the worker that has just failed where there is another", () => {
  const pool = new WorkerPool(URLS, createFakeClock());
  for (const url of URLS) assert.notEqual(pool.take(keyOf(url), url).url, url);
  const alone = new WorkerPool(["http://a"], createFakeClock());
  assert.equal(alone.take("k", "http://a").url, "http://a");
});

Deno.test("take tries the worker whose probe is due first where every circuit is open", async () => {
  const clock = createFakeClock();
  const pool = new WorkerPool(["http://a", "http://b"], clock);
  breakOf(pool, "http://b", ["http://a", "http://b"]);
  await clock.advance(10);
  const key = keyOf("http://a", ["http://a", "http://b"]);
  for (let k = 0; k < 3; k++) pool.take(key).done("fault");
  assert.deepEqual([pool.standing("http://a")?.circuit, pool.standing("http://b")?.circuit], ["open", "open"]);
  assert.equal(pool.take(key).url, "http://b");
  assert.equal(pool.take(key, "http://b").url, "http://a");
});
