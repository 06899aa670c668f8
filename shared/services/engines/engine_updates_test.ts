import assert from "node:assert/strict";
import { createFakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../../tests/fixtures/list_logger.ts";
import { createPrefixEngine } from "../../../tests/fixtures/prefix_engine.ts";
import { makeRenderer } from "../../../tests/fixtures/recorder_world.ts";
import { byteTokenizer } from "../../../tests/fixtures/byte_tokenizer.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { EngineAction, EngineControl, WorkerResult } from "../../ports/engine_control.ts";
import { EngineGate } from "./engine_gate.ts";
import { EngineUpdates } from "./engine_updates.ts";
import type { Model } from "../model_catalog.ts";
import { Generations } from "./resume_generation.ts";

const never = new AbortController().signal;
const renderer = await makeRenderer(byteTokenizer());

interface World {
  readonly updates: EngineUpdates;
  readonly model: Model;
  readonly gate: EngineGate;
  /** What the workers were asked, with whether the gate was closed then. */
  readonly asked: { readonly action: EngineAction; readonly body: unknown; readonly paused: boolean }[];
  /** How each worker answers from now on; an error: they can't be listed. */
  answers: readonly boolean[] | VerbatimError;
}

function worldOf(name = "m"): World {
  const clock = createFakeClock();
  const gate = new EngineGate({ mostRunning: 2, mostWaiting: 9, clock });
  const control: EngineControl = {
    workers: () => world.answers instanceof VerbatimError ? Promise.reject(world.answers) : Promise.resolve([]),
    act: (action, body) => {
      world.asked.push({ action, body, paused: gate.paused });
      if (world.answers instanceof VerbatimError) return Promise.reject(world.answers);
      return Promise.resolve(world.answers.map(resultOf));
    },
  };
  const model: Model = {
    name,
    renderer,
    engine: createPrefixEngine([]),
    control,
    generations: new Generations({ gate, clock, logger: createListLogger(), retryMs: 0 }),
    maxContextTokens: 100,
    createdAtS: 0,
  };
  const world: World = { updates: new EngineUpdates(), model, gate, asked: [], answers: [true, true] };
  return world;
}

function resultOf(ok: boolean, k: number): WorkerResult {
  return { url: `http://worker${k}`, ok, status: ok ? 200 : null, message: ok ? "ok" : "no answer" };
}

Deno.test("a pause closes the gate before a worker is asked, and to continue opens it after", async () => {
  const { updates, model, asked, gate } = worldOf();
  const paused = await updates.act(model, "pause", { mode: "retract" }, never);
  assert.deepEqual(paused, {
    action: "pause",
    model: "m",
    ok: true,
    paused: true,
    results: [resultOf(true, 0), resultOf(true, 1)],
  });
  await updates.act(model, "set_version", { new_version: "2" }, never);
  assert.equal(gate.paused, true);
  const continued = await updates.act(model, "continue", {}, never);
  assert.deepEqual([continued.ok, continued.paused, gate.paused], [true, false, false]);
  assert.deepEqual(asked, [
    { action: "pause", body: { mode: "retract" }, paused: true },
    { action: "set_version", body: { new_version: "2" }, paused: true },
    { action: "continue", body: {}, paused: true },
  ]);
});

Deno.test("pauses and continuations that come at once are sent one after the other", async () => {
  const world = worldOf();
  const { updates, model, asked, gate } = world;
  const { act } = model.control;
  const steps: string[] = [];
  const control: EngineControl = {
    ...model.control,
    async act(action, body, signal) {
      steps.push(`${action} begins`);
      await Promise.resolve();
      // The first pause is one that no worker takes.
      world.answers = asked.length === 0 ? [false, false] : [true, true];
      const results = await act(action, body, signal);
      steps.push(`${action} ends`);
      return results;
    },
  };
  const slow = { ...model, control };
  const reports = await Promise.all(
    (["pause", "pause", "continue", "pause"] as const).map((action) => updates.act(slow, action, {}, never)),
  );
  assert.deepEqual(reports.map(pick), [[false, false], [true, true], [true, false], [true, true]]);
  const order = ["pause", "pause", "continue", "pause"].flatMap((action) => [`${action} begins`, `${action} ends`]);
  assert.deepEqual([steps, gate.paused], [order, true]);
});

Deno.test("where some workers fail the report says which; the gate follows the first that did it", async () => {
  const world = worldOf();
  const { updates, model, gate } = world;
  world.answers = [true, false];
  const paused = await updates.act(model, "pause", {}, never);
  assert.deepEqual([paused.ok, paused.paused, paused.results.map(({ ok }) => ok)], [false, true, [true, false]]);
  world.answers = [false, false];
  assert.deepEqual(pick(await updates.act(model, "pause", {}, never)), [false, true], "who waited goes on waiting");
  assert.deepEqual(pick(await updates.act(model, "continue", {}, never)), [false, true]);
  world.answers = [false, true];
  assert.deepEqual(pick(await updates.act(model, "continue", {}, never)), [false, false]);
  world.answers = [false, false];
  assert.deepEqual(pick(await updates.act(model, "pause", {}, never)), [false, false], "nobody waits for nothing");
  assert.equal(gate.paused, false);
});

function pick(report: { readonly ok: boolean; readonly paused: boolean }): [boolean, boolean] {
  return [report.ok, report.paused];
}

Deno.test("workers that can't be listed, or of which there are none, are an error that changes nothing", async () => {
  const world = worldOf();
  const { updates, model, gate } = world;
  for (const answers of [[], new VerbatimError("engine_unavailable", "The router is away")]) {
    world.answers = answers;
    for (const wasPaused of [false, true]) {
      if (wasPaused) gate.pause();
      else gate.resume();
      for (const action of ["pause", "continue", "flush"] as const) {
        await assert.rejects(updates.act(model, action, {}, never), { code: "engine_unavailable" });
        assert.equal(gate.paused, wasPaused, action);
      }
    }
  }
  const state = await updates.stateOf(model, never);
  assert.deepEqual([state.workers, state.reason, state.paused], [[], "The router is away", true]);
});

Deno.test("a budget lets so many tasks through, whatever is given back to one before it", async () => {
  const { updates, model } = worldOf();
  const { model: other } = worldOf("other");
  for (let k = 0; k < 3; k++) updates.takeTask(model);
  updates.setBudget(model, 2);
  const giveBack = updates.takeTask(model);
  updates.takeTask(model);
  assert.throws(() => updates.takeTask(model), (thrown: VerbatimError) => {
    assert.deepEqual([thrown.code, thrown.retryAfterS], ["busy", 10]);
    assert.equal(thrown.details?.reason, "staleness budget");
    return true;
  });
  updates.takeTask(other);
  giveBack();
  updates.takeTask(model);
  assert.equal((await updates.stateOf(model, never)).newTaskBudget, 0);
  updates.setBudget(model, 0);
  giveBack();
  assert.throws(() => updates.takeTask(model), { code: "busy" });
  updates.setBudget(model, null);
  updates.takeTask(model);
  assert.equal((await updates.stateOf(model, never)).newTaskBudget, null);
});
