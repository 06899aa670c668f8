/** Any OpenAI-compatible API, by the `openai` package: messages in, text and calls out. For evaluation; it has no tokens. */

import OpenAI from "openai";
import { VerbatimError } from "../../core/errors.ts";
import { costUsd, type TokenPrice } from "../../core/price_table.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { BackendRequest, ModelBackend } from "../../ports/model_backend.ts";
import type { GenerationResult } from "../../schemas/generate.ts";
import { failureOf } from "./openai_failure.ts";
import { ReplyReader } from "./openai_reply.ts";
import { chatBody, guessTokens } from "./openai_request.ts";
import { RateLimiter, type RateLimits } from "./rate_limiter.ts";
import { SilenceWatch } from "../sglang/silence_watch.ts";

/** What the adapter needs. */
export interface OpenAIBackendOptions {
  /** The name by which it is asked for here. */
  readonly model: string;
  /** The name by which it is asked for there. */
  readonly upstreamModel: string;
  readonly baseUrl: string;
  /** Null: the API wants none. */
  readonly apiKey: string | null;
  /** The variable the key is from, for messages. */
  readonly keyVariable: string | null;
  readonly limits: RateLimits;
  /** Attempts after the first. */
  readonly retries: number;
  /** The first wait between attempts; it doubles. */
  readonly baseDelayMs: number;
  /** Longest silence of a request. */
  readonly idleTimeoutMs: number;
  readonly tokenLimitField: "max_completion_tokens" | "max_tokens";
  /** Null: not known. */
  readonly price: TokenPrice | null;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Draws from [0, 1), for the waits. */
  readonly random: () => number;
  readonly fetch?: typeof fetch;
}

/** No wait between attempts is longer; who is asked to wait longer tells the caller instead. */
const LONGEST_WAIT_MS = 60_000;
/** The package's own timer is out of the way: silence is watched here. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

/** A text-level backend. */
export class OpenAIBackend implements ModelBackend {
  readonly supportsTokenIds = false;
  readonly #options: OpenAIBackendOptions;
  readonly #client: OpenAI;
  readonly #limiter: RateLimiter;

  /** Nothing is sent before the first call. */
  constructor(options: OpenAIBackendOptions) {
    this.#options = options;
    this.#limiter = new RateLimiter(options.limits, options.clock);
    // Whatever is left out here the package would look for in the environment.
    this.#client = new OpenAI({
      apiKey: options.apiKey ?? "none",
      adminAPIKey: null,
      baseURL: options.baseUrl,
      organization: null,
      project: null,
      webhookSecret: null,
      maxRetries: 0,
      timeout: NO_TIMEOUT_MS,
      logLevel: "off",
      ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    });
  }

  /** As the port says. After the first delta nothing is sent again. */
  async generate(request: BackendRequest): Promise<GenerationResult> {
    const { model, upstreamModel, tokenLimitField, retries, keyVariable, apiKey: key, clock } = this.#options;
    const body = chatBody(request, { model: upstreamModel, tokenLimitField });
    const tokens = guessTokens(body, request.sampling_params.max_new_tokens);
    for (let attempt = 0;; attempt++) {
      const reader = new ReplyReader({
        onDelta: request.onDelta,
        newCallId: () => `call_${this.#options.ids.hex(24)}`,
      });
      try {
        return await this.#attempt(request, body, { tokens, reader });
      } catch (thrown) {
        request.signal.throwIfAborted();
        const failure = failureOf(thrown, { model, keyVariable, key, nowMs: clock.now() });
        const waitMs = failure.retryAfterMs ?? this.#backoffMs(attempt);
        if (!failure.mayRetry || reader.hasSpoken || attempt >= retries || waitMs > LONGEST_WAIT_MS) {
          throw failure.error;
        }
        // Who is asked too much is left alone by every request, not by this one only.
        if (failure.error.code === "busy") this.#limiter.holdUntil(clock.now() + waitMs);
        await clock.sleep(waitMs, request.signal);
      }
    }
  }

  /** Not implemented: the API shows no tokens. */
  tokenize(): number[] {
    throw notImplemented("tokenize");
  }

  /** Not implemented: the API shows no tokens. */
  decode(): string {
    throw notImplemented("decode");
  }

  async #attempt(
    request: BackendRequest,
    body: ReturnType<typeof chatBody>,
    { tokens, reader }: { readonly tokens: number; readonly reader: ReplyReader },
  ): Promise<GenerationResult> {
    const { clock, idleTimeoutMs, price } = this.#options;
    using permit = await this.#limiter.acquire(tokens, request.signal);
    const watch = new SilenceWatch(clock, idleTimeoutMs);
    const signal = AbortSignal.any([request.signal, watch.signal]);
    try {
      if (request.onDelta === undefined) {
        reader.take(await this.#client.chat.completions.create({ ...body, stream: false }, { signal }));
      } else {
        const chunks = await this.#client.chat.completions.create(
          { ...body, stream: true, stream_options: { include_usage: true } },
          { signal },
        );
        for await (const chunk of chunks) {
          watch.heard();
          reader.push(chunk);
        }
      }
      // The package ends an aborted stream as if it were whole.
      signal.throwIfAborted();
      const reply = reader.end();
      const { prompt_tokens, completion_tokens, cached_tokens } = reply.usage;
      permit.settle(prompt_tokens + completion_tokens);
      const usage = { promptTokens: prompt_tokens, cachedTokens: cached_tokens, completionTokens: completion_tokens };
      return { ...reply, cost_usd: costUsd(usage, price) };
    } catch (thrown) {
      // What failed before a word took none of the minute's tokens.
      if (!reader.hasSpoken) permit.settle(0);
      watch.signal.throwIfAborted();
      throw thrown;
    } finally {
      watch.end();
    }
  }

  /** Doubles, and is spread over half of itself, so that many do not come back at once. */
  #backoffMs(attempt: number): number {
    const { baseDelayMs, random } = this.#options;
    return Math.min(baseDelayMs * 2 ** attempt, LONGEST_WAIT_MS) * (0.5 + random() / 2);
  }
}

function notImplemented(method: string): VerbatimError {
  return new VerbatimError("unsupported", `NotImplemented: a text-level backend can't ${method}, it shows no tokens`);
}
