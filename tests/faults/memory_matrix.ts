/** Faults by seed, tasks in memory. */

import { testSeeds } from "./seed_tests.ts";
import { memoryPlace } from "./store_place.ts";

testSeeds("memory", () => Promise.resolve(memoryPlace()));
