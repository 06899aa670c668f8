/** Registers one test a seed, or the one that VERBATIM_FAULT_SEED names. */

import { planFaults, type StoreKind, storeOf } from "./fault_plan.ts";
import { routerOf } from "./real_router.ts";
import { runSeed } from "./run_seed.ts";
import type { StorePlace } from "./store_place.ts";

/** Seeds of the whole matrix, over all stores. */
export const SEEDS = 200;

/** Tests of the seeds below `most` whose store is of this kind. `VERBATIM_FAULT_SEED` is a seed, or a range such as 300-340. */
export function testSeeds(store: StoreKind, openPlace: () => Promise<StorePlace>, most: number = SEEDS): void {
  const [first = "0", last = first] = (Deno.env.get("VERBATIM_FAULT_SEED") || `0-${most - 1}`).split("-");
  for (let seed = Number(first); seed <= Number(last); seed++) {
    if (storeOf(seed) === store) testSeed(seed, openPlace);
  }
}

/** One test. */
export function testSeed(seed: number, openPlace: () => Promise<StorePlace>): void {
  const { store, topology } = planFaults(seed);
  Deno.test(`seed ${seed}: ${topology}, ${store}`, async (test) => {
    const program = topology === "router" ? routerOf(seed) : null;
    if (program !== null && "missing" in program) {
      await test.step(`a stand-in takes the router's place: ${program.missing}`, () => {});
    }
    await runSeed(seed, openPlace);
  });
}
