/** Text-level models for evaluation, from OPENAI_BACKENDS. */

import { readNamedVariable } from "./adapters/read_environment.ts";
import { listedPrice, type TokenPrice } from "./core/price_table.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Environment } from "./schemas/environment.ts";
import type { TextBackend } from "./schemas/text_backends.ts";
import type { TextModel } from "./services/model_catalog.ts";

/** Makes them. A key's variable that is not set stops the start. Nothing is sent: these APIs charge for answers. */
export async function composeTextModels(
  environment: Environment,
  parts: { readonly clock: Clock; readonly ids: Ids },
): Promise<TextModel[]> {
  const backends = environment.OPENAI_BACKENDS;
  if (backends.length === 0) return [];
  // The package takes a while to load, and most processes have no use for it.
  const { OpenAIBackend } = await import("./adapters/openai/openai_backend.ts");
  return backends.map((settings) => {
    const { api_key_env: keyVariable = null } = settings;
    const upstreamModel = settings.upstream_model ?? settings.model;
    const backend = new OpenAIBackend({
      ...parts,
      model: settings.model,
      upstreamModel,
      baseUrl: settings.base_url,
      apiKey: keyVariable === null ? null : readNamedVariable(keyVariable, "OPENAI_BACKENDS"),
      keyVariable,
      limits: {
        requestsPerMinute: settings.requests_per_minute ?? Infinity,
        tokensPerMinute: settings.tokens_per_minute ?? Infinity,
        maxConcurrency: settings.max_concurrency,
      },
      retries: settings.retries,
      baseDelayMs: settings.base_delay_s * 1000,
      idleTimeoutMs: settings.timeout_s * 1000,
      tokenLimitField: settings.token_limit_field,
      price: priceOf(settings.price) ?? listedPrice(upstreamModel),
      random: Math.random,
    });
    return { name: settings.model, backend, createdAtS: Math.floor(parts.clock.now() / 1000) };
  });
}

function priceOf(price: TextBackend["price"]): TokenPrice | null {
  if (price === undefined) return null;
  return { input: price.input, cachedInput: price.cached_input ?? price.input, output: price.output };
}
