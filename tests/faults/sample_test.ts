/** A few seeds of their own for every run of the tests; the whole matrix is `deno task test:faults`. */

import { testSeed } from "./seed_tests.ts";
import { kvPlace, memoryPlace } from "./store_place.ts";

for (const seed of [1000, 1001, 1005, 1006]) testSeed(seed, () => Promise.resolve(memoryPlace()));
for (const seed of [1002, 1003, 1008, 1012]) testSeed(seed, kvPlace);
