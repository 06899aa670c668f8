/** One run: agents work while its plan's faults come, and afterwards everything that was promised is looked for. */

import assert from "node:assert/strict";
import type { EmbeddedEngineOptions } from "../../shared/engine/engine_options.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import { PLAY_SCRIPT } from "../e2e/recorded_plays.ts";
import { until } from "../e2e/until.ts";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";
import { type Lived, liveTask } from "./agent_life.ts";
import { checkLived } from "./check_lived.ts";
import { type FaultPlan, planFaults } from "./fault_plan.ts";
import { FaultWorld } from "./fault_world.ts";
import { Judge, WEIGHTS } from "./judge.ts";
import { PatientClient } from "./patient_client.ts";
import { Progress } from "./progress.ts";
import { NO_ANSWER, type StorePlace } from "./store_place.ts";

/** A run that takes longer is stuck. */
const DEADLINE_MS = 180_000;

/** Runs a seed over a store. What fails, fails with the plan. */
export async function runSeed(seed: number, openPlace: () => Promise<StorePlace>): Promise<void> {
  const plan = planFaults(seed);
  const progress = new Progress();
  const came: string[] = [];
  const unhandled: unknown[] = [];
  const onUnhandled = (event: PromiseRejectionEvent): void => {
    event.preventDefault();
    unhandled.push(event.reason);
  };
  globalThis.addEventListener("unhandledrejection", onUnhandled);
  try {
    await run(plan, { progress, came, openPlace });
    assert.deepEqual(unhandled, [], "no rejection is left to itself");
  } catch (cause) {
    const words = [
      `Seed ${seed} failed; VERBATIM_FAULT_SEED=${seed} deno task test:faults runs it alone.`,
      `Before ${plan.topology}, over ${plan.store}, ${plan.workerSlots} slots a worker, ${plan.concurrency} at once.`,
      ...plan.faults.map((planned) => JSON.stringify(planned)),
      `Counted: ${progress}. Came: ${came.join(", ")}.`,
      String(cause instanceof Error ? cause.message : cause),
    ];
    throw new Error(words.join("\n"), { cause });
  } finally {
    globalThis.removeEventListener("unhandledrejection", onUnhandled);
  }
}

interface Run {
  readonly progress: Progress;
  /** Kinds of the faults that came, in order. */
  readonly came: string[];
  readonly openPlace: () => Promise<StorePlace>;
}

async function run(plan: FaultPlan, { progress, came, openPlace }: Run): Promise<void> {
  const tokenizer = await qwen3Tokenizer();
  const engine = engineOptions(tokenizer);
  await using world = await FaultWorld.start({ plan, place: await openPlace(), tokenizer, engine, progress });
  const suffering: Promise<void>[] = [];
  for (const { after, nth, fault } of plan.faults) {
    progress.at(after, nth, () => {
      came.push(fault.kind);
      suffering.push(world.suffer(fault));
    });
  }
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(DEADLINE_MS)]);
  const client = new PatientClient({
    url: world.lives.url,
    connection: () => world.lives.connection,
    progress,
    signal,
  });
  let underWay = "";
  const living = plan.tasks.map((task) =>
    liveTask(client, task).catch((cause) => {
      underWay ||= String(world);
      stop.abort();
      throw new Error(`${task.id} (${task.dialect}): ${cause.message}`, { cause });
    })
  );
  const ends = await Promise.allSettled(living);
  await Promise.all(suffering);
  await world.heal();
  const failed = ends.filter((end) => end.status === "rejected");
  if (failed.length > 0) {
    const messages = failed.slice(0, 3).map(({ reason }) => reason.message);
    throw new Error([...messages, `Under way then: ${underWay}.`].join("\n"), { cause: failed[0]!.reason });
  }
  const lives = ends.flatMap((end) => end.status === "fulfilled" ? [end.value] : []);
  await assertQuiet(world, lives);
  const judge = new Judge(
    engine,
    plan.faults.flatMap(({ fault }) => fault.kind === "weights_updated" ? [fault.version] : []),
  );
  for (const lived of lives) await check(client, judge, lived);
  assert.equal(came.length, plan.faults.length, "every fault came");
}

/** Nobody works any more, and nothing is left over. */
async function assertQuiet({ workers, lives }: FaultWorld, lived: readonly Lived[]): Promise<void> {
  await lives.idle();
  await until("no worker runs anything", () => workers.every(({ busy }) => busy === 0));
  const { store, models, metrics, inFlight } = lives.services;
  const { gate } = models.default.generations;
  assert.deepEqual([gate.running, gate.waiting, gate.paused, inFlight.total], [0, 0, false, 0]);
  assert.match((await metrics.text()).body, /^verbatim_calls_in_flight 0$/m);
  for (const { task: { id } } of lived) {
    const read = await store.getTask(id);
    const inForce = async () => (await store.listCalls(read!.task.uid)).filter(({ untilMs }) => untilMs > Date.now());
    // What a killed process left holds for some time yet.
    await until(`no lease of ${id} is in force`, async () => (await inForce()).length === 0);
  }
  const errors = lives.errors.filter(({ fields }) => !String(fields.cause).includes(NO_ANSWER));
  assert.deepEqual(errors, [], "nothing else was logged as an error");
}

async function check(client: PatientClient, judge: Judge, lived: Lived): Promise<void> {
  try {
    await checkLived(client, judge, lived);
  } catch (cause) {
    throw new Error(
      `${lived.task.id} (${JSON.stringify(lived.task)}): ${cause instanceof Error ? cause.message : cause}`,
      {
        cause,
      },
    );
  }
}

function engineOptions(tokenizer: Tokenizer): EmbeddedEngineOptions {
  return {
    tokenizer,
    modelName: "faulty",
    maxContextTokens: 32_768,
    incremental: true,
    script: PLAY_SCRIPT,
    ...WEIGHTS,
    firstTokenDelayMs: 1,
    tokenDelayMs: 1,
  };
}
