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
  const stop = texts(raw, "stop");
  const stopRegex = texts(raw, "stop_regex").map((source) => ({ source, expression: expression(source) }));
  const grammars = GRAMMARS.flatMap((kind) => {
    const grammar = text(raw, kind);
    return grammar ? [{ kind, text: grammar }] : [];
  });
  const stopTokenIds = new Set(numbers(raw, "stop_token_ids"));
  const logitBias = biases(raw);
  for (const name of ["max_new_tokens", "min_new_tokens", "top_k", "sampling_seed", "stream_interval"]) {
    integer(raw, name);
  }

  let temperature = number(raw, "temperature", 1);
  let topK = number(raw, "top_k", -1);
  if (temperature >= 0 && temperature < GREEDY_BELOW) {
    temperature = 1;
    topK = 1;
  }
  if (topK === -1) topK = Infinity;
  const topP = number(raw, "top_p", 1);
  const minP = number(raw, "min_p", 0);
  const frequencyPenalty = number(raw, "frequency_penalty", 0);
  const presencePenalty = number(raw, "presence_penalty", 0);
  const repetitionPenalty = number(raw, "repetition_penalty", 1);
  const minNewTokens = number(raw, "min_new_tokens", 0);
  const maxNewTokens = raw.max_new_tokens === undefined
    ? 128
    : raw.max_new_tokens === null
    ? null
    : number(raw, "max_new_tokens", 128);

  check(
    Number.isFinite(temperature) && temperature >= 0,
    `temperature must be a non-negative finite number, got ${temperature}.`,
  );
  check(topP > 0 && topP <= 1, `top_p must be in (0, 1], got ${topP}.`);
  check(minP >= 0 && minP <= 1, `min_p must be in [0, 1], got ${minP}.`);
  check(topK >= 1, `top_k must be -1 (disable) or at least 1, got ${topK}.`);
  check(
    frequencyPenalty >= -2 && frequencyPenalty <= 2,
    `frequency_penalty must be in [-2, 2], got ${frequencyPenalty}.`,
  );
  check(presencePenalty >= -2 && presencePenalty <= 2, `presence_penalty must be in [-2, 2], got ${presencePenalty}.`);
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
  check(grammars.length <= 1, "Only one of json_schema, regex, ebnf, or structural_tag can be set.");
  return {
    maxNewTokens,
    minNewTokens,
    temperature,
    topP,
    topK,
    minP,
    frequencyPenalty,
    presencePenalty,
    repetitionPenalty,
    stop,
    stopTokenIds,
    stopRegex,
    ignoreEos: flag(raw, "ignore_eos", false),
    skipSpecialTokens: flag(raw, "skip_special_tokens", true),
    noStopTrim: flag(raw, "no_stop_trim", false),
    logitBias,
    samplingSeed: raw.sampling_seed === undefined || raw.sampling_seed === null
      ? null
      : number(raw, "sampling_seed", 0),
    streamInterval: raw.stream_interval === undefined || raw.stream_interval === null
      ? null
      : Math.max(1, number(raw, "stream_interval", 1)),
    grammar: grammars[0] ?? null,
  };
}

function check(holds: boolean, message: string): void {
  if (!holds) throw new EngineRefusal("value", message);
}

function wrongType(name: string): EngineRefusal {
  return new EngineRefusal("type", `sampling_params.${name} has the wrong type`);
}

/** Python's truth counts: a bool is the number 0 or 1. Null means the default. */
function number(raw: Readonly<Record<string, unknown>>, name: string, fallback: number): number {
  const value = raw[name];
  if (value === undefined || value === null) return fallback;
  if (typeof value === "boolean") return Number(value);
  if (typeof value !== "number") throw wrongType(name);
  return value;
}

function integer(raw: Readonly<Record<string, unknown>>, name: string): void {
  const value = raw[name];
  if (typeof value === "number" && !Number.isInteger(value)) throw wrongType(name);
}

function flag(raw: Readonly<Record<string, unknown>>, name: string, fallback: boolean): boolean {
  const value = raw[name];
  return value === undefined || value === null ? fallback : Boolean(value);
}

function text(raw: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = raw[name];
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") throw wrongType(name);
  return value;
}

function texts(raw: Readonly<Record<string, unknown>>, name: string): string[] {
  const value = raw[name];
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [value];
  if (!Array.isArray(value)) throw wrongType(name);
  return value.map((entry: unknown) => {
    if (typeof entry !== "string") throw wrongType(name);
    return entry;
  });
}

function numbers(raw: Readonly<Record<string, unknown>>, name: string): number[] {
  const value = raw[name];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw wrongType(name);
  return value.filter((entry: unknown) => entry !== null).map((entry: unknown) => {
    if (typeof entry !== "number" || !Number.isInteger(entry)) throw wrongType(name);
    return entry;
  });
}

function biases(raw: Readonly<Record<string, unknown>>): Map<number, number> {
  const value = raw.logit_bias;
  const found = new Map<number, number>();
  if (value === undefined || value === null) return found;
  if (typeof value !== "object" || Array.isArray(value)) throw wrongType("logit_bias");
  for (const [key, bias] of Object.entries(value)) {
    if (!/^-?\d+$/.test(key)) {
      throw new EngineRefusal("value", `invalid literal for int() with base 10: '${key}'`);
    }
    if (typeof bias !== "number") throw wrongType("logit_bias");
    found.set(Number(key), bias);
  }
  return found;
}

function expression(source: string): RegExp {
  try {
    return new RegExp(source);
  } catch (cause) {
    // Python's re.error is no ValueError.
    throw new EngineRefusal("type", `stop_regex is no regular expression: ${String(cause)}`);
  }
}
