/** Writes turns to a KV file until it is killed, and prints the number of each task's turn once it is acknowledged. */

import { openDenoKvStore } from "../../shared/adapters/kv/deno_kv_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { createTask, makeTask, makeTurn, manyIds, mustAppend } from "./store_fixtures.ts";

if (import.meta.main) {
  const [path, run] = Deno.args;
  const store = openDenoKvStore({ kv: await Deno.openKv(path), clock: systemClock });
  await Promise.all(["small", "large"].map(async (kind) => {
    let read = await createTask(store, makeTask({ taskId: `${kind}-${run}` }));
    for (let number = 0;; number++) {
      const completion = manyIds(kind === "large" ? 80_000 : 50, number);
      read = await mustAppend(store, read, { turn: makeTurn(number, { completion }) });
      await Deno.stdout.write(new TextEncoder().encode(`${kind} ${number}\n`));
    }
  }));
}
