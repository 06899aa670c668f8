/**
 * One of several processes that race on the same tasks: it appends, finishes and drops at random, and prints what was
 * acknowledged, one JSON line each. It ends by itself.
 */

import { openPostgresStore } from "../../shared/adapters/postgres/postgres_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { TaskStore, VersionedTask } from "../../shared/ports/task_store.ts";
import { type Random, seededRandom } from "../fixtures/seeded_random.ts";
import { appendTurn, makeTurn, manyIds, mustGet } from "./store_fixtures.ts";

/** What a racer prints. */
export type Acknowledged =
  | { readonly kind: "append"; readonly taskId: string; readonly turn: number; readonly rid: string }
  /** Another turn answers the digest. */
  | { readonly kind: "repeat"; readonly taskId: string; readonly turn: number; readonly digest: string }
  | { readonly kind: "finish"; readonly taskId: string; readonly turns: number }
  | { readonly kind: "drop"; readonly taskId: string };

/** Digests are shared by all racers, so that they race for repeats too. */
const DIGESTS = 40;
const FINISH_PROBABILITY = 0.01;
const DROP_PROBABILITY = 0.005;

if (import.meta.main) {
  const [url, name, rounds, ...taskIds] = Deno.args;
  const random = seededRandom(Number(name));
  const store = openPostgresStore({ url: url!, clock: systemClock, maxConnections: 4 });
  let sequence = 0;
  await Promise.all(Array.from({ length: 3 }, async () => {
    for (let round = 0; round < Number(rounds); round++) {
      const rid = `${name}-${sequence++}`;
      const taskId = random.pick(taskIds);
      const done = await act(store, random, { read: await mustGet(store, taskId), rid });
      if (done !== null) await Deno.stdout.write(new TextEncoder().encode(`${JSON.stringify(done)}\n`));
    }
  }));
  await store.close();
}

/** One attempt at something; what was acknowledged, or null where the task was changed meanwhile or is closed. */
async function act(
  store: TaskStore,
  random: Random,
  options: { read: VersionedTask; rid: string },
): Promise<Acknowledged | null> {
  const { read, rid } = options;
  const { task, version } = read;
  const { taskId, turns } = task;
  if (task.status === "dropped") return null;
  if (random.chance(DROP_PROBABILITY)) {
    return await store.dropTask({ ...task, status: "dropped" }, version) ? { kind: "drop", taskId } : null;
  }
  if (task.status === "finished") return null;
  if (random.chance(FINISH_PROBABILITY)) {
    const finished = await store.updateTask({ ...task, status: "finished" }, version);
    return finished === null ? null : { kind: "finish", taskId, turns };
  }
  const digest = `digest-${random.integer(DIGESTS)}`;
  const made = makeTurn(turns, { digest, completion: manyIds(random.pick([2, 300, 20_000]), turns) });
  const turn = { ...made, record: { ...made.record, rid } };
  const expectRepeat = random.chance(0.5) ? undefined : null;
  const outcome = await appendTurn(store, read, expectRepeat === undefined ? { turn } : { turn, expectRepeat });
  if (outcome.kind === "committed") return { kind: "append", taskId, turn: turns, rid };
  return outcome.kind === "task_changed" ? null : { kind: "repeat", taskId, turn: outcome.turn, digest };
}
