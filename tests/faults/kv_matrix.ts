/** Faults by seed, tasks in a KV file. */

import { testSeeds } from "./seed_tests.ts";
import { kvPlace } from "./store_place.ts";

testSeeds("kv", kvPlace);
