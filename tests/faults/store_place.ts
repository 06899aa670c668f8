/** Where a run's tasks are kept, over all lives of its gateway, and how that fails. */

import { DatabaseSync } from "node:sqlite";
import { openDenoKvStore } from "../../shared/adapters/kv/deno_kv_store.ts";
import { createMemoryStore } from "../../shared/adapters/memory_store.ts";
import { openPostgresStore } from "../../shared/adapters/postgres/postgres_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import { startTcpProxy } from "../fixtures/tcp_proxy.ts";
import type { WorldFault } from "./fault_plan.ts";
import { sleepMs } from "./sleep_ms.ts";

/** What can go wrong with a store. */
export type StoreFault = Extract<WorldFault, { kind: `store_${string}` }>;

/** A place that is opened once a life. */
export interface StorePlace extends AsyncDisposable {
  /** A store over what is kept there; its `close` leaves that as it is. */
  open(): Promise<TaskStore>;
  /** Has it fail; resolves when it is well again. What comes by count may be left over then, until `heal`. */
  fail(fault: StoreFault): Promise<void>;
  /** Nothing fails any more. */
  heal(): void;
}

/** What a call that fails by count says. */
export const NO_ANSWER = "The store gave no answer; try again later.";

/** In memory, as if in a database that outlives the process. */
export function memoryPlace(): StorePlace {
  const kept = createMemoryStore();
  let failing = { calls: 0, ran: false };
  const failingStore = eachCall(kept, async (name, call) => {
    if (name === "close") return;
    if (failing.calls === 0) return await call();
    failing.calls--;
    if (failing.ran) await call();
    throw new VerbatimError("not_ready", NO_ANSWER, { retryAfterS: 1 });
  });
  return {
    open: () => Promise.resolve(failingStore),
    fail(fault) {
      if (fault.kind !== "store_failing") throw new Error(`Memory has no ${fault.kind}`);
      failing = { calls: fault.calls, ran: fault.ran };
      return Promise.resolve();
    },
    heal() {
      failing = { calls: 0, ran: false };
    },
    [Symbol.asyncDispose]: () => kept.close(),
  };
}

/** In a file, each life with a handle of its own. */
export async function kvPlace(): Promise<StorePlace> {
  const folder = await Deno.makeTempDir({ prefix: "verbatim-faults-" });
  const path = `${folder}/tasks.sqlite`;
  return {
    open: async () => openDenoKvStore({ kv: await Deno.openKv(path), clock: systemClock, maxChecks: 40 }),
    async fail(fault) {
      if (fault.kind !== "store_locked") throw new Error(`A KV file has no ${fault.kind}`);
      const other = new DatabaseSync(path);
      try {
        // Without waiting: where somebody writes just now, there is no lock to be had.
        other.exec("begin immediate");
        await sleepMs(fault.lockedMs);
        other.exec("rollback");
      } catch (thrown) {
        if (!String(thrown).includes("locked")) throw thrown;
      } finally {
        other.close();
      }
    },
    heal() {},
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

/** In a Postgres database, behind a connection that can be cut. */
export function postgresPlace(databaseUrl: string): StorePlace {
  const direct = new URL(databaseUrl);
  const proxy = startTcpProxy(Number(direct.port));
  const url = new URL(databaseUrl);
  url.port = String(proxy.port);
  return {
    open: () => Promise.resolve(openPostgresStore({ url: url.href, clock: systemClock })),
    fail(fault) {
      if (fault.kind !== "store_cut") throw new Error(`Postgres has no ${fault.kind}`);
      let left = fault.cuts;
      proxy.onBytes = ({ from }) => {
        if (left === 0 || from !== fault.from) return "pass";
        left--;
        return fault.passes ? "pass_and_cut" : "cut";
      };
      return Promise.resolve();
    },
    heal() {
      proxy.onBytes = () => "pass";
    },
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

/** A store whose every call goes through `around`; what that returns is the call's result. */
export function eachCall(
  store: TaskStore,
  around: (name: PropertyKey, call: () => Promise<unknown>) => Promise<unknown>,
): TaskStore {
  return new Proxy(store, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => around(property, async () => await value.apply(target, given));
    },
  });
}
