/** A gateway before several embedded workers whose weights, once updated, are others: each version has a distribution of its own. */

import assert from "node:assert/strict";
import { serveGateway } from "../../functions/serve_gateway.ts";
import { readEnvironment } from "../../shared/adapters/read_environment.ts";
import { composeDeno, type Composition } from "../../shared/compose_deno.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import type { EmbeddedEngineOptions } from "../../shared/engine/engine_options.ts";
import { type ServedEngine, serveEmbeddedEngine } from "../../shared/engine/serve_embedded_engine.ts";
import type { Environment } from "../../shared/schemas/environment.ts";
import { createListLogger } from "../fixtures/list_logger.ts";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";
import { type Body, type GatewayClient, gatewayClient } from "./gateway_client.ts";

/** What may differ. */
export interface WorkerFleetOptions {
  readonly workers: number;
  readonly engine?: Partial<EmbeddedEngineOptions>;
  readonly environment?: Partial<Record<keyof Environment, string>>;
}

/** One worker. */
export interface FleetWorker {
  readonly engine: EmbeddedEngine;
  readonly served: ServedEngine;
}

/** All of it, running. */
export interface WorkerFleet extends GatewayClient, AsyncDisposable {
  readonly workers: readonly FleetWorker[];
  readonly services: Composition["services"];
  /** Requests that workers run or queue. */
  readonly running: number;
  /** `POST /engines/update`, which must succeed on all workers. */
  update(body: Record<string, unknown>): Promise<Body>;
  /** log p of each response token under the weights of a version. */
  scores(version: string, prompt: readonly number[], response: readonly number[]): Promise<number[]>;
}

const MODEL_NAME = "fleet";

/** The weights of version `v` are loaded from here; the engine starts with those of version 1. */
export function weightsOf(version: string): string {
  return `/weights/${version}`;
}

/** Starts workers and gateway. */
export async function startWorkerFleet(options: WorkerFleetOptions): Promise<WorkerFleet> {
  const tokenizer = await qwen3Tokenizer();
  const engineOf = (version: string, more: Partial<EmbeddedEngineOptions>): EmbeddedEngine =>
    createEmbeddedEngine({
      tokenizer,
      modelName: MODEL_NAME,
      maxContextTokens: 131_072,
      incremental: true,
      seed: seedOf(weightsOf(version)),
      seedOfWeights: seedOf,
      weightVersion: version,
      ...more,
    });
  const workers = Array.from({ length: options.workers }, (): FleetWorker => {
    const engine = engineOf("1", options.engine ?? {});
    return { engine, served: serveEmbeddedEngine(engine) };
  });
  const composition = await composeDeno(
    readEnvironment({
      KV_PATH: ":memory:",
      MODEL_NAME,
      ...options.environment,
      ROLLOUT_EXTERNAL_ENGINE_ADDRS: workers.map(({ served }) => served.url).join(","),
    }),
    { tokenizer, logger: createListLogger() },
  );
  const gateway = serveGateway(composition.services, { hostname: "127.0.0.1", port: 0 });
  const client = gatewayClient(gateway.url);
  const scorers = new Map<string, EmbeddedEngine>();
  return {
    ...client,
    workers,
    services: composition.services,
    get running() {
      return workers.reduce((sum, { engine }) => sum + engine.running + engine.queued, 0);
    },
    async update(body) {
      const answered = await client.admin("POST", "/engines/update", body);
      assert.equal(answered.status, 200, JSON.stringify(answered.body));
      assert.equal(answered.body.results.length, workers.length);
      return answered.body;
    },
    async scores(version, prompt, response) {
      const scorer = scorers.get(version) ?? engineOf(version, {});
      scorers.set(version, scorer);
      const answered = await scorer.app.request("/generate", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          input_ids: [...prompt, ...response],
          sampling_params: { max_new_tokens: 1 },
          return_logprob: true,
          logprob_start_len: prompt.length - 1,
        }),
      });
      const { meta_info } = await answered.json();
      return meta_info.input_token_logprobs.slice(1).map(([logprob]: [number]) => logprob);
    },
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await composition.close();
      await Promise.all(workers.map(({ served }) => served.close()));
    },
  };
}

function seedOf(modelPath: string): number {
  return Number(modelPath.split("/").at(-1));
}
