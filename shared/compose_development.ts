/**
 * The composition for development, the demo and end-to-end tests: gateway and embedded engine in one process, on
 * loopback. It is never a fallback: production compositions want an engine's address.
 */

import { createHfTokenizer } from "./adapters/tokenizer/hf_tokenizer.ts";
import { packagedTokenizerFolder } from "./adapters/tokenizer/packaged_tokenizer.ts";
import { loadTokenizerFiles } from "./adapters/tokenizer/load_tokenizer_files.ts";
import { readEnvironment } from "./adapters/read_environment.ts";
import { composeDeno, type ComposeDenoParts, type Composition } from "./compose_deno.ts";
import { SAY_SCRIPT } from "./engine/demo_scripts.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./engine/embedded_engine.ts";
import type { EmbeddedEngineOptions } from "./engine/engine_options.ts";
import { type ServedEngine, serveEmbeddedEngine } from "./engine/serve_embedded_engine.ts";
import type { Tokenizer } from "./ports/tokenizer.ts";
import type { Environment } from "./schemas/environment.ts";

/** What may differ from the defaults. */
export interface DevelopmentOptions {
  /** Variables over the defaults of development. */
  readonly environment?: Partial<Record<keyof Environment, string>>;
  /** Options of the embedded engine. */
  readonly engine?: Partial<EmbeddedEngineOptions>;
  readonly parts?: ComposeDenoParts;
}

/** Gateway and engine. */
export interface Development extends Composition {
  readonly environment: Environment;
  readonly tokenizer: Tokenizer;
  readonly engine: EmbeddedEngine;
  readonly served: ServedEngine;
}

/** The name under which the embedded model is served. */
const MODEL_NAME = "verbatim-embedded-qwen3";

/** Starts the engine on a free port and composes a gateway before it, state in memory unless KV_PATH says otherwise. */
export async function composeDevelopment(options: DevelopmentOptions = {}): Promise<Development> {
  const tokenizer = options.parts?.tokenizer ??
    createHfTokenizer(await loadTokenizerFiles(await packagedTokenizerFolder()));
  const defaults = {
    MODEL_NAME,
    KV_PATH: ":memory:",
    MAX_CONTEXT_LEN: "131072",
    ...options.environment,
  };
  const engine = createEmbeddedEngine({
    tokenizer,
    modelName: MODEL_NAME,
    tokenizerPath: await packagedTokenizerFolder(),
    maxContextTokens: Number(defaults.MAX_CONTEXT_LEN),
    incremental: true,
    script: SAY_SCRIPT,
    ...options.engine,
  });
  const served = serveEmbeddedEngine(engine);
  try {
    const environment = readEnvironment({ ...defaults, SGLANG_ROUTER_URL: served.url });
    const composition = await composeDeno(environment, { ...options.parts, tokenizer });
    return {
      services: composition.services,
      environment,
      tokenizer,
      engine,
      served,
      async close() {
        await composition.close();
        await served.close();
      },
    };
  } catch (cause) {
    await served.close();
    throw cause;
  }
}
