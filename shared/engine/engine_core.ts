/** The engine behind its routes: model, script, scheduler, faults and versions in one place. It knows no HTTP. */

import { VerbatimError } from "../core/errors.ts";
import type { Tokenizer } from "../ports/tokenizer.ts";
import { candidatePool } from "./candidate_pool.ts";
import { type EmbeddedEngineOptions, timerSleep } from "./engine_options.ts";
import { EngineRefusal } from "./engine_refusal.ts";
import { EngineRequest } from "./engine_request.ts";
import { FaultList } from "./fault_list.ts";
import type { FinishReason } from "./finish_reason.ts";
import type { GenerateItem } from "./generate_body.ts";
import { Generation } from "./generation.ts";
import { type GrammarOptions, jsonSchemaGrammar, UnsupportedSchema } from "./json_schema_grammar.ts";
import { structuralTagGrammar } from "./structural_tag_grammar.ts";
import { LanguageModel } from "./language_model.ts";
import { ModelPredictor, NullPredictor, type Predictor } from "./predictor.ts";
import { PrefixState, type TurnMarks } from "./prefix_state.ts";
import { type SamplingOptions, samplingOptions } from "./sampling_options.ts";
import { Scheduler, type Sleep } from "./scheduler.ts";
import { CompiledScript } from "./script.ts";
import type { TokenGrammar } from "./token_grammar.ts";

const FAULT_TAIL_IDS = 512;

/** A request that was checked and may start, with the scheduler's own objection where it has one. */
export interface CheckedRequest {
  readonly request: EngineRequest;
  readonly objection: FinishReason | null;
}

/** The engine. */
export class EngineCore {
  readonly tokenizer: Tokenizer;
  readonly options: EmbeddedEngineOptions;
  readonly scheduler: Scheduler;
  readonly faults = new FaultList();
  readonly stopIds: readonly number[];
  readonly sleep: Sleep;
  readonly now: () => number;
  modelPath: string;
  weightVersion: string;
  /** Fires when the server has died. */
  readonly death = new AbortController();
  readonly #stopSet: ReadonlySet<number>;
  readonly #marks: TurnMarks;
  readonly #script: CompiledScript | null;
  readonly #model: LanguageModel;
  readonly #pool: Uint32Array;
  readonly #random: () => number;

  /** Looks at the vocabulary once. Refuses a script where the vocabulary has no generation prompt to hang it on. */
  constructor(options: EmbeddedEngineOptions) {
    const { tokenizer } = options;
    this.options = options;
    this.tokenizer = tokenizer;
    this.modelPath = options.modelName;
    this.weightVersion = options.weightVersion ?? "default";
    this.sleep = options.sleep ?? timerSleep;
    this.now = options.now ?? Date.now;
    this.#random = options.random ?? Math.random;
    this.stopIds = options.stopIds ?? modelStopIds(tokenizer);
    this.#stopSet = new Set(this.stopIds);
    const encode = (text: string): Uint32Array => tokenizer.encode(text, { addSpecialTokens: false });
    const generationPrompt = options.generationPrompt ??
      (tokenizer.addedTokens.has("<|im_start|>") ? "<|im_start|>assistant\n" : "");
    const suffixes = options.generationPromptSuffixes ?? ["<think>\n\n</think>\n\n", "<think>\n"];
    this.#marks = {
      stopIds: this.#stopSet,
      generationPrompt: encode(generationPrompt),
      suffixes: suffixes.map(encode).sort((a, b) => b.length - a.length),
    };
    const stopId = this.stopIds[0] ?? null;
    if (options.script === undefined) {
      this.#script = null;
    } else if (stopId === null || generationPrompt === "") {
      throw new VerbatimError("invalid_request", "A script needs a generation prompt and a stop token; set both.");
    } else {
      this.#script = new CompiledScript(options.script, { tokenizer, stopId });
    }
    this.#pool = candidatePool(tokenizer).filter((id) => !this.#stopSet.has(id));
    const { vocabSize } = tokenizer;
    this.#model = new LanguageModel({ vocabSize, seed: options.seed ?? 0, stopId, pool: this.#pool });
    this.scheduler = new Scheduler({
      maxRunningRequests: options.maxRunningRequests ?? 256,
      maxQueuedRequests: options.maxQueuedRequests ?? null,
      cacheTokens: options.cacheTokens ?? 2_000_000,
      firstTokenDelayMs: options.firstTokenDelayMs ?? 0,
      tokenDelayMs: options.tokenDelayMs ?? 0,
      sleep: this.sleep,
      die: () => this.die(),
    });
  }

  /** Has other weights from the next position on, in requests that run too. */
  loadWeights(modelPath: string): void {
    this.modelPath = modelPath;
    this.#model.seed = this.options.seedOfWeights?.(modelPath) ?? this.#model.seed;
  }

  /** Ends the server: nothing is answered any more. */
  die(): void {
    this.death.abort();
  }

  /** Reads and checks one prompt of a request, in SGLang's order. Throws `EngineRefusal`. */
  async check(item: GenerateItem): Promise<CheckedRequest> {
    const prompt = await this.#promptOf(item);
    this.#checkLength(prompt.length, item);
    const { vocabSize } = this.tokenizer;
    for (const id of item.tokenIdsLogprob ?? []) {
      if (id < 0 || id >= vocabSize) {
        throw new EngineRefusal(
          "value",
          `token_ids_logprob contains out-of-vocabulary token id ${id}; valid range is [0, ${vocabSize}).`,
        );
      }
    }
    if (item.routedExpertsStartLen < 0 || item.routedExpertsStartLen > prompt.length) {
      throw new EngineRefusal(
        "value",
        `routed_experts_start_len must be in [0, ${prompt.length}], got ${item.routedExpertsStartLen}.`,
      );
    }
    const options = samplingOptions(item.samplingParams, vocabSize);
    const room = Math.min(this.options.maxContextTokens, this.options.kvPoolTokens ?? Infinity) - prompt.length;
    const maxNewTokens = Math.max(0, Math.min(options.maxNewTokens ?? Infinity, room));
    const { grammar, objection } = this.#grammar(options);
    // As the patched engine that trainers use: where nothing is cut off, the whole vocabulary is not listed.
    const notesKeptIds = this.options.topPTokenIds === true && options.returnTopPTokenIds && options.topP < 1;
    const generation = new Generation({ prompt, item, options, maxNewTokens, notesKeptIds, grammar }, {
      predictor: this.#predictor(prompt.length, Math.min(maxNewTokens, 4096)),
      tokenizer: this.tokenizer,
      stopIds: this.#stopSet,
      random: this.#random,
    });
    const faults = this.faults.plan({
      rid: item.rid,
      stream: item.stream,
      scoring: item.returnLogprob && item.logprobStartLen >= 0,
      promptTail: () => this.tokenizer.decode(prompt.subarray(-FAULT_TAIL_IDS)),
    });
    const request = new EngineRequest(generation, {
      faults,
      experts: this.options.experts ?? null,
      draftTokens: this.options.draftTokens ?? null,
      startedAtMs: this.now(),
      version: () => this.weightVersion,
    });
    const message = this.#objection(prompt.length, item) ?? objection;
    return {
      request,
      objection: message === null ? null : { type: "abort", message, status_code: 400, err_type: "BadRequestError" },
    };
  }

  async #promptOf(item: GenerateItem): Promise<Uint32Array> {
    if (item.inputIds === null) {
      if (item.text === null || item.text === "") {
        throw new EngineRefusal("value", "texts cannot be empty and tokenizer must be initialized");
      }
      return await this.tokenizer.encodeAsync(item.text, { addSpecialTokens: true });
    }
    const { vocabSize } = this.tokenizer;
    for (const id of item.inputIds) {
      if (typeof id === "number" && id >= 0 && id < vocabSize) continue;
      // SGLang looks at no id; the embedding lookup of a bad one takes the whole server down.
      if (typeof id === "number" && this.options.outOfVocabulary === "die") this.die();
      throw new EngineRefusal("type", `input id ${String(id)} is not in [0, ${vocabSize})`);
    }
    return Uint32Array.from(item.inputIds);
  }

  #checkLength(tokens: number, item: GenerateItem): void {
    const context = this.options.maxContextTokens;
    if (tokens >= context) {
      throw new EngineRefusal(
        "value",
        `The input (${tokens} tokens) is longer than the model's context length (${context} tokens).`,
      );
    }
    const wanted = item.samplingParams.max_new_tokens;
    if (typeof wanted === "number" && tokens + wanted > context) {
      throw new EngineRefusal(
        "value",
        `Requested token count exceeds the model's maximum context length of ${context} tokens. You requested a ` +
          `total of ${tokens + wanted} tokens: ${tokens} tokens from the input messages and ${wanted} tokens for the ` +
          "completion. Please reduce the number of tokens in the input messages or the completion to fit within the " +
          "limit.",
      );
    }
  }

  /** What SGLang's scheduler refuses after the request check passed: the message of an abort with status 400. */
  #objection(tokens: number, item: GenerateItem): string | null {
    const pool = this.options.kvPoolTokens ?? null;
    const start = item.logprobStartLen;
    if (item.returnLogprob && start < -1) throw new EngineRefusal("type", `logprob_start_len ${start} trips an assert`);
    if (pool !== null && tokens >= pool) {
      return `Input length (${tokens} tokens) exceeds the maximum allowed length (${pool - 1} tokens). ` +
        "Use a shorter input or enable --allow-auto-truncate.";
    }
    if (!item.returnLogprob || start <= tokens) return null;
    return `req.logprob_start_len=${start} is higher than the number of input tokens ` +
      `len(req.origin_input_ids)=${tokens}. Please use a smaller logprob_start_len.`;
  }

  /** The grammar asked for, or why it can't be enforced. */
  #grammar(options: SamplingOptions): { grammar: TokenGrammar | null; objection: string | null } {
    const { grammar: asked } = options;
    if (asked === null) return { grammar: null, objection: null };
    const failed = (reason: string) => ({
      grammar: null,
      objection: `Failed to compile ${asked.kind} grammar: ${reason}`,
    });
    const compile = COMPILERS.get(asked.kind);
    if (compile === undefined) return failed("this engine enforces no grammar but json_schema and structural_tag");
    if ((this.options.nullReplyTokens ?? null) !== null) return failed("the null model enforces no grammar");
    try {
      return { grammar: compile(asked.text, { tokenizer: this.tokenizer, words: this.#pool }), objection: null };
    } catch (error) {
      if (error instanceof UnsupportedSchema) return failed(error.message);
      throw error;
    }
  }

  #predictor(promptTokens: number, newTokens: number): Predictor {
    const reply = this.options.nullReplyTokens ?? null;
    if (reply !== null) {
      const ids = Uint32Array.from({ length: Math.max(0, reply - 1) }, (_, i) => this.#pool[i % this.#pool.length]!);
      return new NullPredictor(ids, this.stopIds[0] ?? 0);
    }
    const state = new PrefixState(this.#marks, { script: this.#script, capacity: promptTokens + newTokens });
    return new ModelPredictor(this.#model, state);
  }
}

/** The kinds of grammars that are enforced. */
const COMPILERS: ReadonlyMap<string, (text: string, options: GrammarOptions) => TokenGrammar> = new Map([
  ["json_schema", jsonSchemaGrammar],
  ["structural_tag", structuralTagGrammar],
]);

function modelStopIds(tokenizer: Tokenizer): number[] {
  const { addedTokens, eosId } = tokenizer;
  const known = [addedTokens.get("<|im_end|>"), eosId, addedTokens.get("<|endoftext|>")];
  return [...new Set(known.filter((id) => id !== undefined && id !== null))];
}
