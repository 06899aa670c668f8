/** Sampling parameters in SGLang's names, and the basis that a turn's logprobs stand on. */

/** Sampling parameters as sent to an engine. Absent means the engine's default. */
export interface SamplingParams {
  /** Most tokens to sample; the stop token counts. */
  max_new_tokens?: number | undefined;
  /** Least tokens to sample before a stop counts. */
  min_new_tokens?: number | undefined;
  /** Divides the logits; 0 is greedy. */
  temperature?: number | undefined;
  /** Nucleus, (0, 1]. */
  top_p?: number | undefined;
  /** Candidates kept; -1 keeps all. */
  top_k?: number | undefined;
  /** Least probability relative to the best candidate's, [0, 1]. */
  min_p?: number | undefined;
  /** [-2, 2]. */
  frequency_penalty?: number | undefined;
  /** [-2, 2]. */
  presence_penalty?: number | undefined;
  /** (0, 2]; 1 is none. */
  repetition_penalty?: number | undefined;
  /** Stop strings. */
  stop?: string[] | undefined;
  /** Token ids that stop, beside the model's own. */
  stop_token_ids?: number[] | undefined;
  /** Regular expressions that stop. */
  stop_regex?: string[] | undefined;
  /** Go on after the model's own stop token. */
  ignore_eos?: boolean | undefined;
  /** Leave special tokens out of the engine's text. */
  skip_special_tokens?: boolean | undefined;
  /** Spaces between special tokens in the engine's text. */
  spaces_between_special_tokens?: boolean | undefined;
  /** Keep the matched stop in the engine's text. */
  no_stop_trim?: boolean | undefined;
  /** Grammar: a JSON schema as text. */
  json_schema?: string | undefined;
  /** Grammar: a regular expression. */
  regex?: string | undefined;
  /** Grammar: EBNF. */
  ebnf?: string | undefined;
  /** Grammar: a structural tag as JSON text. */
  structural_tag?: string | undefined;
  /** Added to the logits, by token id. */
  logit_bias?: Record<string, number> | undefined;
  /** Seed of this request, where the engine is deterministic. */
  sampling_seed?: number | undefined;
  /** Scalars for a custom logit processor. */
  custom_params?: Record<string, string | number | boolean | null> | undefined;
}

/**
 * What the sampled logprobs of a turn are logprobs *of*. SGLang reports sampled tokens under
 * log_softmax(logits / temperature) after penalties, biases and grammar masks, and never renormalises over
 * top-p/top-k/min-p; force-decoded ones are always raw.
 */
export interface Basis {
  /** The temperature that divided the logits. */
  readonly temperature: number;
  /** Nucleus at sampling time. */
  readonly top_p: number;
  /** Candidates kept at sampling time; -1 is all. */
  readonly top_k: number;
  /** Least relative probability at sampling time. */
  readonly min_p: number;
  /** Whether a penalty, a logit bias or a least length (which masks the stop tokens) changed the logits. */
  readonly penalties: boolean;
  /** Whether a grammar masked the logits. */
  readonly constrained: boolean;
}

/** The basis of these parameters. Defaults are SGLang's. */
export function basisOf(params: SamplingParams): Basis {
  return {
    temperature: params.temperature ?? 1,
    top_p: params.top_p ?? 1,
    top_k: params.top_k ?? -1,
    min_p: params.min_p ?? 0,
    penalties: (params.frequency_penalty ?? 0) !== 0 || (params.presence_penalty ?? 0) !== 0 ||
      (params.repetition_penalty ?? 1) !== 1 || Object.keys(params.logit_bias ?? {}).length > 0 ||
      (params.min_new_tokens ?? 0) > 0,
    constrained: isConstrained(params),
  };
}

/** Whether a grammar is set. */
export function isConstrained(params: SamplingParams): boolean {
  return Boolean(params.json_schema || params.regex || params.ebnf || params.structural_tag);
}

/** Raw means that sampled and force-decoded logprobs are the same numbers: temperature 1, no penalties, no grammar. */
export function isRaw(basis: Basis): boolean {
  return basis.temperature === 1 && !basis.penalties && !basis.constrained;
}

/** The parameters with this token limit. A least length above it is lowered too: an engine refuses the pair. */
export function withTokenLimit(params: SamplingParams, limit: number): SamplingParams {
  const limited: SamplingParams = { ...params, max_new_tokens: limit };
  if ((params.min_new_tokens ?? 0) > limit) limited.min_new_tokens = limit;
  return limited;
}

/**
 * Whether anything but the tokens decides what is sampled next: a grammar's place, what penalties have counted, the text
 * that a regular expression looks at, a custom processor's memory. Such a generation can't go on from its tokens alone.
 */
export function carriesState(params: SamplingParams): boolean {
  return isConstrained(params) || (params.frequency_penalty ?? 0) !== 0 || (params.presence_penalty ?? 0) !== 0 ||
    (params.repetition_penalty ?? 1) !== 1 || (params.stop_regex ?? []).length > 0 ||
    Object.keys(params.custom_params ?? {}).length > 0;
}

/** The parameters for what is left after `sampled` tokens; `max_new_tokens` is set. */
export function afterTokens(params: SamplingParams, sampled: number): SamplingParams {
  const rest: SamplingParams = { ...params, max_new_tokens: (params.max_new_tokens ?? 0) - sampled };
  if (params.min_new_tokens !== undefined) rest.min_new_tokens = Math.max(0, params.min_new_tokens - sampled);
  return rest;
}
