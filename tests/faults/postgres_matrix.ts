/** Faults by seed, tasks in a Postgres database. */

import { testOnPostgres } from "../contracts/postgres_harness.ts";
import { testSeeds } from "./seed_tests.ts";
import { postgresPlace } from "./store_place.ts";

testOnPostgres("The fault matrix over Postgres", (database) => {
  testSeeds("postgres", () => Promise.resolve(postgresPlace(database().url)));
});
