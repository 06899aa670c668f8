/** `sampling_params` as SGLang reads them: defaults, special cases, checks and their messages, in SGLang's order. */

import { EngineRefusal } from "./engine_refusal.ts";

/** Sampling parameters, checked. */
export interface SamplingOptions {
  /** Null: until the context is full. */
  readonly maxNewTokens: number | null;
  readonly minNewTokens: number;
  /** Never 0: greedy is temperature 1 with `topK` 1. */
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly repetitionPenalty: number;
  readonly stop: readonly string[];
  readonly stopTokenIds: ReadonlySet<number>;
  readonly stopRegex: readonly { readonly source: string; readonly expression: RegExp }[];
  readonly ignoreEos: boolean;
  readonly skipSpecialTokens: boolean;
  readonly noStopTrim: boolean;
  readonly logitBias: ReadonlyMap<number, number>;
  readonly samplingSeed: number | null;
  readonly streamInterval: number | null;
  /** Whether `custom_params` ask for the ids that each token was chosen from. */
  readonly returnTopPTokenIds: boolean;
  /** The grammar asked for, by kind and text, or null. */
  readonly grammar: { readonly kind: string; readonly text: string } | null;
}

/** Names that `sampling_params` may have; another is a TypeError in Python. */
const NAMES: ReadonlySet<string> = new Set([
  ..."max_new_tokens stop stop_token_ids stop_regex temperature top_p top_k min_p".split(" "),
  ..."frequency_penalty presence_penalty repetition_penalty min_new_tokens n".split(" "),
  ..."json_schema regex ebnf structural_tag ignore_eos skip_special_tokens".split(" "),
  ..."spaces_between_special_tokens no_stop_trim custom_params stream_interval logit_bias sampling_seed".split(" "),
]);

const GRAMMARS = ["json_schema", "regex", "ebnf", "structural_tag"] as const;
const GREEDY_BELOW = 1e-6;

/** Reads the parameters of one request. Throws `EngineRefusal`. */
export function samplingOptions(raw: Readonly<Record<string, unknown>>, vocabSize: number): SamplingOptions {
  for (const name of Object.keys(raw)) {
    if (!NAMES.has(name)) throw new EngineRefusal("type", `unexpected keyword argument '${name}'`);
  }
  const params = new RawParams(raw);
  const grammars = GRAMMARS.flatMap((kind) => {
    const text = params.text(kind);
    return text ? [{ kind, text }] : [];
  });
  const greedy = isGreedy(params.number("temperature", 1));
  const topK = greedy ? 1 : params.integer("top_k") ?? -1;
  const options: SamplingOptions = {
    maxNewTokens: raw.max_new_tokens === undefined ? 128 : params.integer("max_new_tokens"),
    minNewTokens: params.integer("min_new_tokens") ?? 0,
    temperature: greedy ? 1 : params.number("temperature", 1),
    topP: params.number("top_p", 1),
    topK: topK === -1 ? Infinity : topK,
    minP: params.number("min_p", 0),
    frequencyPenalty: params.number("frequency_penalty", 0),
    presencePenalty: params.number("presence_penalty", 0),
    repetitionPenalty: params.number("repetition_penalty", 1),
    stop: params.texts("stop"),
    stopTokenIds: new Set(params.integers("stop_token_ids")),
    stopRegex: params.texts("stop_regex").map((source) => ({ source, expression: expression(source) })),
    ignoreEos: params.flag("ignore_eos", false),
    skipSpecialTokens: params.flag("skip_special_tokens", true),
    noStopTrim: params.flag("no_stop_trim", false),
    logitBias: params.biases(),
    samplingSeed: params.integer("sampling_seed"),
    streamInterval: params.integer("stream_interval"),
    returnTopPTokenIds: params.custom("return_top_p_token_ids") === true,
    grammar: grammars[0] ?? null,
  };
  verify(options, vocabSize);
  check(grammars.length <= 1, "Only one of json_schema, regex, ebnf, or structural_tag can be set.");
  return options;
}

/** The checks of values, in SGLang's order. */
function verify(options: SamplingOptions, vocabSize: number): void {
  const { temperature, topP, topK, minP, frequencyPenalty, presencePenalty, repetitionPenalty } = options;
  const { minNewTokens, maxNewTokens, logitBias } = options;
  check(
    Number.isFinite(temperature) && temperature >= 0,
    `temperature must be a non-negative finite number, got ${temperature}.`,
  );
  check(topP > 0 && topP <= 1, `top_p must be in (0, 1], got ${topP}.`);
  check(minP >= 0 && minP <= 1, `min_p must be in [0, 1], got ${minP}.`);
  check(topK >= 1, `top_k must be -1 (disable) or at least 1, got ${topK}.`);
  check(Math.abs(frequencyPenalty) <= 2, `frequency_penalty must be in [-2, 2], got ${frequencyPenalty}.`);
  check(Math.abs(presencePenalty) <= 2, `presence_penalty must be in [-2, 2], got ${presencePenalty}.`);
  check(
    repetitionPenalty > 0 && repetitionPenalty <= 2,
    `repetition_penalty must be in (0, 2] (1.0 = no penalty), got ${repetitionPenalty}.`,
  );
  check(minNewTokens >= 0, `min_new_tokens must be in [0, max_new_tokens], got ${minNewTokens}.`);
  if (maxNewTokens !== null) {
    check(maxNewTokens >= 0, `max_new_tokens must be at least 0, got ${maxNewTokens}.`);
    check(
      minNewTokens <= maxNewTokens,
      `min_new_tokens must be in [0, max_new_tokens(${maxNewTokens})], got ${minNewTokens}.`,
    );
  }
  for (const id of logitBias.keys()) {
    check(id >= 0 && id < vocabSize, `logit_bias must has keys in [0, ${vocabSize - 1}], got ${id}.`);
  }
}

function isGreedy(temperature: number): boolean {
  return temperature >= 0 && temperature < GREEDY_BELOW;
}

function check(holds: boolean, message: string): void {
  if (!holds) throw new EngineRefusal("value", message);
}

/** Reads parameters by type; null is absent, and what Python would choke on is a refusal of kind `type`. */
class RawParams {
  readonly #raw: Readonly<Record<string, unknown>>;

  constructor(raw: Readonly<Record<string, unknown>>) {
    this.#raw = raw;
  }

  /** A bool is the number 0 or 1, as in Python. */
  number(name: string, fallback: number): number {
    const value = this.#raw[name] ?? fallback;
    if (typeof value === "boolean") return Number(value);
    if (typeof value !== "number") throw wrongType(name);
    return value;
  }

  integer(name: string): number | null {
    if ((this.#raw[name] ?? null) === null) return null;
    const value = this.number(name, 0);
    if (!Number.isInteger(value)) throw wrongType(name);
    return value;
  }

  flag(name: string, fallback: boolean): boolean {
    return Boolean(this.#raw[name] ?? fallback);
  }

  text(name: string): string | null {
    const value = this.#raw[name] ?? null;
    if (value !== null && typeof value !== "string") throw wrongType(name);
    return value;
  }

  texts(name: string): string[] {
    return this.#list(name).map((entry) => {
      if (typeof entry !== "string") throw wrongType(name);
      return entry;
    });
  }

  /** Nulls in the list are left out. */
  integers(name: string): number[] {
    return this.#list(name).filter((entry) => entry !== null).map((entry) => {
      if (typeof entry !== "number" || !Number.isInteger(entry)) throw wrongType(name);
      return entry;
    });
  }

  /** One of the custom parameters, which the server itself does not look at. */
  custom(name: string): unknown {
    const params = this.#raw.custom_params ?? {};
    if (typeof params !== "object" || Array.isArray(params)) throw wrongType("custom_params");
    return Object.entries(params).find(([key]) => key === name)?.[1];
  }

  biases(): Map<number, number> {
    const value = this.#raw.logit_bias ?? {};
    if (typeof value !== "object" || Array.isArray(value)) throw wrongType("logit_bias");
    return new Map(
      Object.entries(value).map(([key, bias]: [string, unknown]) => {
        if (!/^-?\d+$/.test(key)) throw new EngineRefusal("value", `invalid literal for int() with base 10: '${key}'`);
        if (typeof bias !== "number") throw wrongType("logit_bias");
        return [Number(key), bias];
      }),
    );
  }

  #list(name: string): unknown[] {
    const value = this.#raw[name] ?? [];
    if (Array.isArray(value)) return value;
    if (typeof value !== "string" || name === "stop_token_ids") throw wrongType(name);
    return [value];
  }
}

function wrongType(name: string): EngineRefusal {
  return new EngineRefusal("type", `sampling_params.${name} has the wrong type`);
}

function expression(source: string): RegExp {
  try {
    return new RegExp(source);
  } catch (cause) {
    // Python's re.error is no ValueError.
    throw new EngineRefusal("type", `stop_regex is no regular expression: ${String(cause)}`);
  }
}
