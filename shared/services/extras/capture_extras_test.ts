/** Extras from the engine's answer to the turn's record: in which order, and what happens when a part of it fails. */

import assert from "node:assert/strict";
import { createRecorderWorld, type RecorderWorld } from "../../../tests/fixtures/recorder_world.ts";
import { spyOnStore } from "../../../tests/fixtures/spy_store.ts";
import { openDenoKvStore } from "../../adapters/kv/deno_kv_store.ts";
import { createMemoryStore } from "../../adapters/memory_store.ts";
import { systemClock } from "../../adapters/system_clock.ts";
import type { Turn } from "../../core/turn.ts";
import type { EngineExtras } from "../../ports/engine.ts";

const TASK = { capture_extras: ["top_p_ids"], sampling: { fixed: { top_p: 0.9 } } };

/** Each token from itself and one more. */
function topPIds(ids: readonly number[]): EngineExtras {
  return {
    topPIds: {
      offsets: Int32Array.from({ length: ids.length + 1 }, (_, at) => 2 * at),
      ids: Int32Array.from(ids.flatMap((id) => [id, id + 1])),
    },
  };
}

function asking(extras?: (ids: readonly number[]) => EngineExtras) {
  const messages = [{ role: "user" as const, content: "Hello", source: 0 }];
  return {
    conversation: { messages, tools: [], settings: {} },
    says: "Hi.",
    ...(extras === undefined ? {} : { extras }),
  };
}

async function onlyTurn(world: RecorderWorld, taskId: string): Promise<Turn> {
  const { task } = await world.services.tasks.get(taskId);
  const [turn, ...others] = (await world.services.exporter.judged(task)).turns;
  assert.ok(turn !== undefined && others.length === 0);
  return turn;
}

Deno.test("an extra's bytes are written before the turn that names them", async () => {
  const spy = spyOnStore(createMemoryStore());
  await using world = await createRecorderWorld({ store: spy.store });
  const { taskId } = await world.createTask(TASK);
  let writtenBefore: number | undefined;
  spy.before("appendTurn", () => {
    writtenBefore = spy.calls.get("putBlob");
  });
  await world.ask(taskId, asking(topPIds));
  assert.equal(writtenBefore, 1);
  const turn = await onlyTurn(world, taskId);
  assert.equal(Object(turn.record.extras?.top_p_ids).ids, 2 * turn.completion.length);
});

Deno.test("a commit that fails leaves bytes that no record names, and they go with the task", async () => {
  const kv = await Deno.openKv(":memory:");
  const spy = spyOnStore(openDenoKvStore({ kv, clock: systemClock }));
  await using world = await createRecorderWorld({ store: spy.store });
  const { taskId, uid } = await world.createTask(TASK);
  const blobs = async () => (await Array.fromAsync(kv.list({ prefix: ["blob", uid] }))).length;
  spy.before("appendTurn", () => Promise.reject(new Error("the process dies here")));
  await assert.rejects(world.ask(taskId, asking(topPIds)));
  spy.before("appendTurn", null);
  assert.equal((await world.services.tasks.get(taskId)).task.turns, 0);
  assert.equal(await blobs(), 1);
  // The same request again captures anew.
  await world.ask(taskId, asking(topPIds));
  const region = await world.services.exporter.region((await world.services.tasks.get(taskId)).task);
  assert.deepEqual(Object(region.result).extras_missing, []);
  assert.equal(await blobs(), 2);
  await world.services.closer.drop(taskId);
  assert.equal(await blobs(), 0);
});

Deno.test("an extra that can't be written is missing, and the turn stands", async () => {
  const spy = spyOnStore(createMemoryStore());
  await using world = await createRecorderWorld({ store: spy.store });
  const { taskId } = await world.createTask(TASK);
  spy.before("putBlob", () => Promise.reject(new Error("no room")));
  await world.ask(taskId, asking(topPIds));
  const turn = await onlyTurn(world, taskId);
  assert.deepEqual(turn.record.extras, { top_p_ids: { missing: "not_kept" } });
  assert.equal(world.logger.lines.filter(({ level }) => level === "warn").length, 1);
});

Deno.test("bytes that are gone fail the export that needs them, and no other", async () => {
  const spy = spyOnStore(createMemoryStore());
  await using world = await createRecorderWorld({ store: spy.store });
  const { taskId } = await world.createTask(TASK);
  await world.ask(taskId, asking(topPIds));
  spy.before("getBlob", () => Promise.reject(new Error("the disk is gone")));
  const { task } = await world.services.tasks.get(taskId);
  await assert.rejects(world.services.exporter.region(task), /the disk is gone/);
  assert.equal((await world.services.exporter.region(task, [])).reason, null);
});

/** An engine whose answers have rows of these widths, one after the other; null: it does not say its experts. */
function rowsOfWidths(...widths: (number | null)[]): (ids: readonly number[]) => EngineExtras {
  return () => {
    const width = widths.shift() ?? null;
    const bytes = new Uint8Array(3 * (width ?? 0) * 4);
    return { experts: width === null ? { missing: "dropped" } : { start: 0, rows: 3, bytes } };
  };
}

Deno.test("experts count only in rows of the width that the engine was seen to say", async () => {
  // The first answer is to the probe.
  for (
    const [widths, expected] of [
      [[6, 6], null],
      [[6, 4], "inconsistent"],
      [[null, 6], "unverified"],
      [[6, null], "dropped"],
    ] as const
  ) {
    await using world = await createRecorderWorld();
    const { taskId } = await world.createTask({ capture_extras: ["routed_experts"] });
    await world.ask(taskId, asking(rowsOfWidths(...widths)));
    const experts = (await onlyTurn(world, taskId)).record.extras?.routed_experts;
    assert.ok(experts !== undefined);
    if (expected === null) assert.equal(Object(experts).width, 6);
    else assert.deepEqual(experts, { missing: expected });
  }
});
