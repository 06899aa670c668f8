/** What an embedded engine is made with. */

import type { Tokenizer } from "../ports/tokenizer.ts";
import type { ExpertShape } from "./routed_experts.ts";
import type { Sleep } from "./scheduler.ts";
import type { Script } from "./script.ts";

/** Options of `createEmbeddedEngine`. Everything but the first three has a default. */
export interface EmbeddedEngineOptions {
  readonly tokenizer: Tokenizer;
  readonly modelName: string;
  /** What `/model_info` says of the tokenizer's place. Default: the model's name. */
  readonly tokenizerPath?: string;
  /** Prompt and output together. */
  readonly maxContextTokens: number;
  /** Makes another model. Default 0. */
  readonly seed?: number;
  /** The seed of the weights that an update loads from a path. Default: the seed there is; an update changes names alone. */
  readonly seedOfWeights?: (modelPath: string) => number;
  /** What the model says where. Default: nothing scripted. */
  readonly script?: Script;
  /** Frames of a stream carry deltas. Default false: they are cumulative. */
  readonly incremental?: boolean;
  /** Tokens a frame. Default 1. */
  readonly streamInterval?: number;
  /** Whether the flat form of top logprobs is known; false: as behind a router, or in an older engine. Default true. */
  readonly flatTopLogprobs?: boolean;
  /** Asked for as a bearer key on all routes but `/health` and `/health_generate`. Default: none. */
  readonly apiKey?: string;
  /** Default `"default"`. */
  readonly weightVersion?: string;
  /** The model's own stop ids, the one that closes a turn first. Default: `<|im_end|>`, the tokenizer's eos, `<|endoftext|>`. */
  readonly stopIds?: readonly number[];
  /** The fixed part of the generation prompt. Default `<|im_start|>assistant\n`, where the vocabulary has the token. */
  readonly generationPrompt?: string;
  /** What a template may put after it. Default an empty and an open reasoning block. */
  readonly generationPromptSuffixes?: readonly string[];
  /** Requests computed at once; the others queue. Default 256. */
  readonly maxRunningRequests?: number;
  /** Requests in the queue; beyond it 503. Default null: no limit. */
  readonly maxQueuedRequests?: number | null;
  /** Size of the KV pool: a prompt that fills it is refused by the scheduler, an output silently ends with it. Default null: no limit. */
  readonly kvPoolTokens?: number | null;
  /** Tokens the prefix cache holds. Default 2 000 000. */
  readonly cacheTokens?: number;
  /** Delays of every request. Default 0. */
  readonly firstTokenDelayMs?: number;
  readonly tokenDelayMs?: number;
  /** How long after a disconnect the request is aborted; null: never. Default 0. */
  readonly disconnectAbortDelayMs?: number | null;
  /** An id outside the vocabulary: a plain 500, or the death of the server (as in SGLang). Default `"error"`. */
  readonly outOfVocabulary?: "error" | "die";
  /** No model: every reply is this many tokens, the stop token included. Default null. */
  readonly nullReplyTokens?: number | null;
  /** The model is a mixture of experts and says which were chosen, where it is asked to (`--enable-return-routed-experts`). Default: it is none. */
  readonly experts?: ExpertShape;
  /** Says which ids each token was chosen from, where `custom_params` ask for it, as slime's SGLang does. Default false. */
  readonly topPTokenIds?: boolean;
  /** Counters as speculative decoding with so many drafts a round would have them. Default: none. */
  readonly draftTokens?: number;
  /** Draws from [0, 1) where a request has no seed. Default `Math.random`. */
  readonly random?: () => number;
  /** Default: timers. */
  readonly sleep?: Sleep;
  /** Epoch milliseconds. Default `Date.now`. */
  readonly now?: () => number;
}

/** Timers as a `Sleep`. */
export function timerSleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
