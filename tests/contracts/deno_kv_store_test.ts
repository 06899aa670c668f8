import { openDenoKvStore } from "../../shared/adapters/kv/deno_kv_store.ts";
import type { Clock } from "../../shared/ports/clock.ts";
import { START_MS } from "./store_fixtures.ts";
import { testTaskStore } from "./task_store_contract.ts";

/** Time stands still for the store's records; waiting for a lock waits. */
const clock: Clock = {
  now: () => START_MS,
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

for (const place of ["memory", "file"]) {
  testTaskStore(`DenoKvStore (${place})`, async () => {
    const folder = await Deno.makeTempDir();
    const kv = await Deno.openKv(place === "memory" ? ":memory:" : `${folder}/store.kv`);
    const store = openDenoKvStore({ kv, clock });
    return {
      store,
      residue: (uid) => countUnder(kv, uid),
      async dispose() {
        await store.close();
        await Deno.remove(folder, { recursive: true });
      },
    };
  });
}

async function countUnder(kv: Deno.Kv, uid: string): Promise<number> {
  let entries = 0;
  for await (const { key } of kv.list({ prefix: [] })) if (key[1] === uid) entries++;
  return entries;
}
