/** Deno KV stores for tests, under a spy or in a file of their own. */

import { type DenoKvStoreOptions, openDenoKvStore } from "../../shared/adapters/kv/deno_kv_store.ts";
import type { Clock } from "../../shared/ports/clock.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import { type KvSpy, spyOnKv } from "./kv_spy.ts";
import { START_MS } from "./store_fixtures.ts";

/** Time that stands still. */
export const clock: Clock = { now: () => START_MS, sleep: () => Promise.resolve() };

export interface SpiedStore {
  readonly store: TaskStore;
  readonly spy: KvSpy;
}

/** A store in memory under a spy. */
export async function withSpy(
  check: (opened: SpiedStore) => Promise<void>,
  options: Partial<DenoKvStoreOptions> = {},
): Promise<void> {
  const spy = spyOnKv(await Deno.openKv(":memory:"));
  const store = openDenoKvStore({ clock, ...options, kv: spy.kv });
  try {
    await check({ store, spy });
  } finally {
    spy.onCommit = () => {};
    spy.onRead = () => {};
    await store.close();
  }
}

/** A path for a database, and its removal. */
export async function withFile(check: (path: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await check(`${folder}/store.kv`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** All keys of a database. */
export async function keysOf(kv: Deno.Kv): Promise<Deno.KvKey[]> {
  const keys: Deno.KvKey[] = [];
  for await (const { key } of kv.list({ prefix: [] })) keys.push(key);
  return keys;
}

/** Holds back every commit until the returned function is called. */
export function holdCommits(spy: KvSpy): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  spy.onCommit = () => promise;
  return resolve;
}

/** Resolves when everything that needs no input or output has gone as far as it can. */
export function macrotask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
