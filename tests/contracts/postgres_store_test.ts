import { openPostgresStore } from "../../shared/adapters/postgres_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { countUnder, emptyDatabase, testOnPostgres } from "./postgres_harness.ts";
import { testTaskStore } from "./task_store_contract.ts";

testOnPostgres("PostgresStore", (database) => {
  for (const prepare of [false, true]) {
    testTaskStore(`PostgresStore (${prepare ? "prepared" : "unprepared"})`, async () => {
      const { url } = database();
      await emptyDatabase(url);
      const store = openPostgresStore({ url, clock: systemClock, prepare });
      return { store, residue: (uid) => countUnder(url, uid), dispose: () => store.close() };
    });
  }
});
