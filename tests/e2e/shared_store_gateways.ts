/** Two gateways over one store, as two processes would be, before one embedded engine. */

import assert from "node:assert/strict";
import { serveGateway } from "../../functions/serve_gateway.ts";
import { createPrometheusMetrics } from "../../shared/adapters/prometheus_metrics.ts";
import { createRandomIds } from "../../shared/adapters/random_ids.ts";
import { readEnvironment } from "../../shared/adapters/read_environment.ts";
import { createSglangEngine } from "../../shared/adapters/sglang/sglang_engine.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { createTrackedBackground } from "../../shared/adapters/tracked_background.ts";
import { composeGenerations } from "../../shared/compose_model.ts";
import { composeServices } from "../../shared/compose_services.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import { serveEmbeddedEngine } from "../../shared/engine/serve_embedded_engine.ts";
import type { Engine } from "../../shared/ports/engine.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import { createRenderer } from "../../shared/rendering/create_renderer.ts";
import { byteTokenizer } from "../fixtures/byte_tokenizer.ts";
import { createListLogger, type ListLogger } from "../fixtures/list_logger.ts";
import { noWorkers } from "../fixtures/no_workers.ts";
import { qwen3TokenizerFiles } from "../fixtures/qwen3_tokenizer.ts";
import { seededRandom } from "../fixtures/seeded_random.ts";
import { spyOnStore, type SpyStore } from "../fixtures/spy_store.ts";
import { EventStream } from "./event_stream.ts";
import type { Answered, Body } from "./harness.ts";
import { PLAY_SCRIPT } from "./recorded_plays.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

/** One of the gateways. */
export interface SharingGateway {
  readonly url: string;
  /** The store as this gateway asks it. */
  readonly spy: SpyStore;
  readonly logger: ListLogger;
  /** Resolves when nothing of it runs in the background. */
  idle(): Promise<void>;
  /** An own endpoint. */
  admin(method: string, path: string, body?: unknown): Promise<Answered>;
  /** A chat completion, not streamed. */
  chat(key: string, body: Record<string, unknown>, headers?: Record<string, string>): Promise<Answered>;
  /** A streamed chat completion; resolves with its headers. */
  stream(key: string, body: Record<string, unknown>, headers?: Record<string, string>): Promise<EventStream>;
}

/** Both, and what is before them. */
export interface SharedStoreGateways extends AsyncDisposable {
  readonly one: SharingGateway;
  readonly two: SharingGateway;
  readonly embedded: EmbeddedEngine;
  /** No token leaves the engine while it is closed. */
  readonly gate: TokenGate;
  /** The engine, to find logprobs again. */
  readonly engine: Engine;
  /** A task with fields of `POST /tasks`, opened at the first. */
  createTask(fields?: Record<string, unknown>): Promise<{ id: string; key: string }>;
  /** Waits until the engine runs this many requests. */
  engineRuns(count: number): Promise<void>;
}

/** Starts both over stores that share what they keep. Closing is left to whoever opened the stores. */
export async function startSharedStoreGateways(
  stores: readonly [TaskStore, TaskStore],
): Promise<SharedStoreGateways> {
  await using stack = new AsyncDisposableStack();
  const { chat_template: chatTemplate } = Object((await qwen3TokenizerFiles()).tokenizerConfig);
  const tokenizer = byteTokenizer({ chatTemplate });
  const renderer = createRenderer({ tokenizer });
  const gate = new TokenGate();
  const embedded = createEmbeddedEngine({
    tokenizer,
    modelName: "bytes",
    maxContextTokens: 131_072,
    incremental: true,
    script: PLAY_SCRIPT,
    random: seededRandom(5).unit,
    ...gate.engine,
  });
  const served = serveEmbeddedEngine(embedded);
  stack.defer(() => served.close());

  function start(shared: TaskStore): { gateway: SharingGateway; engine: Engine } {
    const spy = spyOnStore(shared);
    const logger = createListLogger();
    const background = createTrackedBackground(logger);
    const engine = createSglangEngine({
      url: served.url,
      vocabSize: tokenizer.vocabSize,
      retryMs: 1000,
      idleTimeoutMs: 60_000,
      clock: systemClock,
      logger,
      background,
      random: Math.random,
    });
    const environment = readEnvironment({});
    const generations = composeGenerations(environment, { clock: systemClock, logger });
    const services = composeServices({
      store: spy.store,
      models: [{
        name: "bytes",
        renderer,
        engine,
        control: noWorkers,
        generations,
        maxContextTokens: 131_072,
        createdAtS: 0,
      }],
      clock: systemClock,
      ids: createRandomIds(systemClock),
      logger,
      background,
      createMetrics: createPrometheusMetrics,
    }, environment);
    const gateway = serveGateway(services, { hostname: "127.0.0.1", port: 0 });
    stack.defer(async () => {
      await gateway.close();
      await background.idle();
    });
    return { engine, gateway: sharingGateway(gateway.url, { spy, logger, idle: () => background.idle() }) };
  }

  const one = start(stores[0]);
  const two = start(stores[1]);
  const owned = stack.move();
  return {
    one: one.gateway,
    two: two.gateway,
    embedded,
    gate,
    engine: one.engine,
    async createTask(fields = {}) {
      const { status, body } = await one.gateway.admin("POST", "/tasks", fields);
      assert.equal(status, 201, JSON.stringify(body));
      return { id: body.task_id, key: body.api_key };
    },
    engineRuns: (count) => until(`the engine runs ${count}`, () => embedded.running === count),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function sharingGateway(url: string, parts: Pick<SharingGateway, "spy" | "logger" | "idle">): SharingGateway {
  async function call(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<Answered> {
    const response = await fetch(url + path, {
      method,
      headers: { "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json: Body = await response.json();
    return { status: response.status, headers: response.headers, body: json };
  }
  return {
    url,
    ...parts,
    admin: (method, path, body) => call(method, path, body, {}),
    chat: (key, body, headers = {}) =>
      call("POST", "/v1/chat/completions", body, { authorization: `Bearer ${key}`, ...headers }),
    stream: (key, body, headers = {}) =>
      EventStream.open(`${url}/v1/chat/completions`, {
        headers: { authorization: `Bearer ${key}`, ...headers },
        body: JSON.stringify({ stream: true, ...body }),
      }),
  };
}
