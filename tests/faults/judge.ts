/** Engines that nothing happens to, one for the weights of each version, asked without a socket: where logprobs are found again. */

import { createSglangEngine } from "../../shared/adapters/sglang/sglang_engine.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { createTrackedBackground } from "../../shared/adapters/tracked_background.ts";
import { createEmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import type { EmbeddedEngineOptions } from "../../shared/engine/engine_options.ts";
import type { Engine } from "../../shared/ports/engine.ts";
import { createListLogger } from "../fixtures/list_logger.ts";

/** The version that every worker begins with; those of later weights are their numbers, too. */
export const FIRST_VERSION = "1";

/** Where the weights of a version are loaded from. */
export function weightsOf(version: string): string {
  return `/weights/${version}`;
}

/** What makes an engine's distribution that of its weights. */
export const WEIGHTS: Pick<EmbeddedEngineOptions, "seed" | "seedOfWeights" | "weightVersion"> = {
  seed: seedOf(weightsOf(FIRST_VERSION)),
  seedOfWeights: seedOf,
  weightVersion: FIRST_VERSION,
};

/** Judges what workers with these options sampled. */
export class Judge {
  /** Every version that there was in the run. */
  readonly versions: readonly string[];
  readonly #options: EmbeddedEngineOptions;
  readonly #engines = new Map<string, Engine>();

  /** `updates`: the versions of later weights. */
  constructor(options: EmbeddedEngineOptions, updates: readonly string[]) {
    this.versions = [...new Set([FIRST_VERSION, ...updates])];
    this.#options = options;
  }

  /** The engine with the weights of a version. */
  of(version: string): Engine {
    const known = this.#engines.get(version);
    if (known !== undefined) return known;
    const engine = this.#create(version);
    this.#engines.set(version, engine);
    return engine;
  }

  /** log p of each response token under the weights of a version. */
  async scores(version: string, prompt: readonly number[], response: readonly number[]): Promise<Float64Array> {
    const rid = crypto.randomUUID().replaceAll("-", "");
    const ids = { prompt: Uint32Array.from(prompt), response: Uint32Array.from(response) };
    return await this.of(version).score({ rid, ...ids }, AbortSignal.timeout(60_000));
  }

  #create(version: string): Engine {
    const seed = seedOf(weightsOf(version));
    const { app } = createEmbeddedEngine({ ...this.#options, seed, firstTokenDelayMs: 0, tokenDelayMs: 0 });
    const logger = createListLogger();
    return createSglangEngine({
      url: "http://judge",
      fetch: async (url, init) => await app.request(String(url), init),
      vocabSize: this.#options.tokenizer.vocabSize,
      retryMs: 0,
      idleTimeoutMs: 60_000,
      clock: systemClock,
      logger,
      background: createTrackedBackground(logger),
      random: () => 0.5,
    });
  }
}

function seedOf(modelPath: string): number {
  return Number(modelPath.split("/").at(-1));
}
