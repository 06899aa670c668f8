import assert from "node:assert/strict";
import { createFakeClock } from "../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../tests/fixtures/list_logger.ts";
import { noWorkers } from "../../tests/fixtures/no_workers.ts";
import { qwen3Tokenizer } from "../../tests/fixtures/qwen3_tokenizer.ts";
import { createSglangEngine } from "../adapters/sglang/sglang_engine.ts";
import { createTrackedBackground } from "../adapters/tracked_background.ts";
import { createRenderer } from "../rendering/create_renderer.ts";
import { EngineGate } from "./engines/engine_gate.ts";
import { type Model, ModelCatalog, type TextModel } from "./model_catalog.ts";
import { Generations } from "./engines/resume_generation.ts";

const tokenizer = await qwen3Tokenizer();
const renderer = createRenderer({ tokenizer });
const logger = createListLogger();

function modelOf(name: string): Model {
  const engine = createSglangEngine({
    url: "http://127.0.0.1:1",
    vocabSize: tokenizer.vocabSize,
    retryMs: 0,
    idleTimeoutMs: 1000,
    clock: createFakeClock(),
    logger,
    background: createTrackedBackground(logger),
    random: () => 0,
  });
  const clock = createFakeClock();
  const gate = new EngineGate({ mostRunning: 1, mostWaiting: 1, clock });
  const generations = new Generations({ gate, clock, logger, retryMs: 0 });
  return { name, renderer, engine, control: noWorkers, generations, maxContextTokens: 100, createdAtS: 0 };
}

Deno.test("ModelCatalog of one model takes any name for it", () => {
  const model = modelOf("a");
  const catalog = new ModelCatalog([model]);
  assert.equal(catalog.default, model);
  for (const name of ["a", "gpt-4o", "", null, undefined]) assert.equal(catalog.resolve(name), model);
});

Deno.test("ModelCatalog of several models takes no name for the first, and refuses an unknown one", () => {
  const [first, second] = [modelOf("a"), modelOf("b")];
  const catalog = new ModelCatalog([first, second]);
  assert.deepEqual(catalog.list(), [first, second]);
  assert.equal(catalog.resolve(null), first);
  assert.equal(catalog.resolve(undefined), first);
  assert.equal(catalog.resolve("b"), second);
  assert.throws(() => catalog.resolve("c"), {
    code: "model_not_found",
    details: { field: "model", model: "c", models: ["a", "b"] },
  });
});

Deno.test("ModelCatalog refuses to be empty, and two models of one name", () => {
  assert.throws(() => new ModelCatalog([]), { code: "not_ready" });
  assert.throws(() => new ModelCatalog([modelOf("a"), modelOf("b"), modelOf("a")]), { code: "not_ready" });
});

const textModel: TextModel = {
  name: "judge",
  createdAtS: 0,
  backend: {
    supportsTokenIds: false,
    generate: () => Promise.reject(new Error("not asked")),
    tokenize: () => [],
    decode: () => "",
  },
};

Deno.test("ModelCatalog means a text-level model only by its name, the call's or the task's", () => {
  const model = modelOf("a");
  const catalog = new ModelCatalog([model], [textModel]);
  assert.deepEqual([catalog.list(), catalog.listText()], [[model], [textModel]]);
  for (const name of ["a", "gpt-4o", null]) assert.equal(catalog.textModel(name), null);
  assert.equal(catalog.textModel("judge"), textModel);
  assert.equal(catalog.textModel("gpt-4o", "judge"), textModel);
  assert.equal(catalog.textModel(null, "judge"), textModel);
  assert.equal(catalog.textModel("a", "judge"), null);
  assert.equal(catalog.resolve("gpt-4o"), model);
});

Deno.test("ModelCatalog gives no text-level model for one of tokens, and lets no name be both", () => {
  const catalog = new ModelCatalog([modelOf("a")], [textModel]);
  assert.throws(() => catalog.resolve("judge"), { code: "unsupported", message: /Field "model": .* evaluation only/ });
  assert.throws(() => new ModelCatalog([modelOf("judge")], [textModel]), { code: "not_ready" });
});

Deno.test("ModelCatalog.named takes no name that is not written out", () => {
  const only = modelOf("a");
  const catalog = new ModelCatalog([only]);
  assert.deepEqual([catalog.named(undefined), catalog.named(null), catalog.named("a")], [only, only, only]);
  assert.throws(() => catalog.named("b"), { code: "model_not_found" });
});
