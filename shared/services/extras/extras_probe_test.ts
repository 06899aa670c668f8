import assert from "node:assert/strict";
import { createFakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createRecorderWorld } from "../../../tests/fixtures/recorder_world.ts";
import { createRandomIds } from "../../adapters/random_ids.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { EngineExtras, EngineRequest } from "../../ports/engine.ts";
import { ExtrasProbe } from "./extras_probe.ts";
import type { Model } from "../model_catalog.ts";

interface World extends AsyncDisposable {
  readonly probe: ExtrasProbe;
  readonly model: Model;
  readonly calls: EngineRequest[];
  readonly forward: (ms: number) => Promise<void>;
}

/** An engine that answers probes so; it may change its mind. */
async function worldOf(answer: (request: EngineRequest) => EngineExtras | Error | "aborted"): Promise<World> {
  const clock = createFakeClock();
  const recorder = await createRecorderWorld({ clock });
  const calls: EngineRequest[] = [];
  const known = recorder.services.models.default;
  const engine: Model["engine"] = {
    ...known.engine,
    async *generate(request) {
      calls.push(request);
      const extras = await Promise.resolve(answer(request));
      if (extras instanceof Error) throw extras;
      const prompt = { promptTokens: 1, cachedTokens: 0 };
      if (extras === "aborted") yield { type: "aborted", message: "", weightVersions: [], ...prompt };
      else yield { type: "end", finish: { type: "length" }, weightVersion: null, ...prompt, extras };
    },
  };
  return {
    probe: new ExtrasProbe({ clock, ids: createRandomIds(clock) }),
    model: { ...known, engine },
    calls,
    forward: (ms) => clock.advance(ms),
    [Symbol.asyncDispose]: () => recorder[Symbol.asyncDispose](),
  };
}

const EXPERTS = { experts: { start: 0, rows: 2, bytes: new Uint8Array(2 * 6 * 4) } };

Deno.test("ExtrasProbe asks once for what an engine says, and learns how wide its rows are", async () => {
  await using world = await worldOf(() => EXPERTS);
  const { probe, model, calls } = world;
  const widths = await Promise.all([probe.expertsWidth(model), probe.expertsWidth(model)]);
  await probe.assertSaid(model, ["routed_experts", "prefix_cache_info"]);
  assert.deepEqual([widths, calls.length], [[6, 6], 1]);
  const [{ extras, sampling, stream }] = calls as [EngineRequest];
  assert.deepEqual([extras, stream], [{ expertsFrom: 0 }, false]);
  assert.ok(sampling.max_new_tokens! > 1 && sampling.top_p! < 1 && sampling.ignore_eos === true);
  probe.forget(model);
  await probe.expertsWidth(model);
  assert.equal(calls.length, 2);
});

Deno.test("ExtrasProbe believes for a minute that an engine does not say it", async () => {
  let says: EngineExtras = { experts: { missing: "dropped" } };
  await using world = await worldOf(() => says);
  const { probe, model, calls } = world;
  const refused = { code: "unsupported", details: { field: "capture_extras" } };
  for (let count = 0; count < 2; count++) {
    await assert.rejects(probe.assertSaid(model, ["routed_experts"]), (thrown: typeof refused) => {
      assert.deepEqual([thrown.code, thrown.details.field], ["unsupported", "capture_extras"]);
      return true;
    });
  }
  assert.equal(calls.length, 1);
  assert.equal(await probe.expertsWidth(model), null);
  says = EXPERTS;
  await world.forward(60_000);
  await probe.assertSaid(model, ["routed_experts"]);
  assert.equal(calls.length, 2);
});

Deno.test("ExtrasProbe tells an engine that refuses from one that can't be asked", async () => {
  const refusal = new VerbatimError("engine_failed", "refused", {
    details: { engine_status: 400, engine_message: "routed experts are not enabled" },
  });
  let says: Error | "aborted" = refusal;
  await using world = await worldOf(() => says);
  const { probe, model } = world;
  await assert.rejects(probe.assertSaid(model, ["spec_info"]), { code: "unsupported", message: /are not enabled/ });
  says = new VerbatimError("engine_unavailable", "not now");
  await assert.rejects(probe.assertSaid(model, ["top_p_ids"]), { code: "engine_unavailable" });
  says = "aborted";
  await assert.rejects(probe.assertSaid(model, ["top_p_ids"]), { code: "engine_unavailable" });
  assert.equal(await probe.expertsWidth(model), null, "nor is it a reason for a turn to fail");
});
