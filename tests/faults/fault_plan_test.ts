/** Plans are functions of their seeds, and between them they hold everything that can go wrong. */

import assert from "node:assert/strict";
import { planFaults } from "./fault_plan.ts";
import { SEEDS } from "./seed_tests.ts";

const PLANS = Array.from({ length: SEEDS }, (_, seed) => planFaults(seed));

Deno.test("a seed has one plan, and no other seed has it", () => {
  assert.deepEqual(Array.from({ length: SEEDS }, (_, seed) => planFaults(seed)), PLANS);
  assert.equal(new Set(PLANS.map(({ faults }) => JSON.stringify(faults))).size, SEEDS);
});

Deno.test("the matrix has every store before every topology, and every fault many times", () => {
  const worlds = countsOf(PLANS.map(({ store, topology }) => `${topology} ${store}`));
  assert.equal(worlds.size, 12);
  assert.ok(Math.min(...worlds.values()) >= 2, JSON.stringify([...worlds]));
  const faults = countsOf(PLANS.flatMap((plan) => plan.faults.map(({ fault }) => fault.kind)));
  assert.equal(faults.size, 12, JSON.stringify([...faults]));
  assert.ok(Math.min(...faults.values()) >= 20, JSON.stringify([...faults]));
  const ofEngines = countsOf(
    PLANS.flatMap((plan) => plan.faults.flatMap(({ fault }) => fault.kind === "worker_faulty" ? [nameOf(fault)] : [])),
  );
  assert.equal(ofEngines.size, 13, JSON.stringify([...ofEngines]));
  assert.ok(Math.min(...ofEngines.values()) >= 10, JSON.stringify([...ofEngines]));
});

Deno.test("a gateway that is killed never has requests that outlive their clients", () => {
  for (const { faults } of PLANS) {
    const kinds = faults.map(({ fault }) => fault.kind === "worker_faulty" ? nameOf(fault) : fault.kind);
    assert.ok(!(kinds.includes("gateway_killed") && kinds.includes("zombie")));
  }
});

function nameOf({ fault }: { fault: { kind: string; by?: string } }): string {
  return fault.by === undefined ? fault.kind : `${fault.kind} by ${fault.by}`;
}

function countsOf(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
