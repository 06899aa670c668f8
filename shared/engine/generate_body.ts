/** The body of `/generate`, made into one entry a prompt: batches, broadcasting, `n`, request ids. It checks no lengths. */

import { EngineRefusal } from "./engine_refusal.ts";

/** One prompt of a request. */
export interface GenerateItem {
  readonly rid: string;
  /** Set where `inputIds` is null. */
  readonly text: string | null;
  readonly inputIds: readonly number[] | null;
  readonly samplingParams: Readonly<Record<string, unknown>>;
  readonly returnLogprob: boolean;
  readonly logprobStartLen: number;
  readonly topLogprobsNum: number;
  /** Whether the input's top lists are answered as two flat arrays, as numbers or in base64; else nested. */
  readonly flatTopLogprobs: "off" | "numbers" | "base64";
  readonly tokenIdsLogprob: readonly number[] | null;
  readonly returnTextInLogprobs: boolean;
  readonly returnPromptTokenIds: boolean;
  readonly returnRoutedExperts: boolean;
  readonly routedExpertsStartLen: number;
  readonly stream: boolean;
  /** Partition of the prefix cache. */
  readonly cacheKey: string;
}

/** A body, taken apart. */
export interface GenerateBody {
  /** Whether the answer is one object; else it is an array. */
  readonly single: boolean;
  readonly items: readonly GenerateItem[];
  /** Samples of each prompt: `n`. */
  readonly samples: number;
  /** The client's id where `n` > 1: held while the samples, which have ids of their own, are made. */
  readonly groupRids: readonly string[];
  readonly stream: boolean;
  /** Whether the request outlives its client. */
  readonly background: boolean;
}

type Raw = Readonly<Record<string, unknown>>;

/** Which of a body's prompts is read. */
interface Place {
  readonly batched: boolean;
  readonly index: number;
  readonly samples: number;
}

/** Takes a body apart. `newRid` makes ids where the client gave none. Throws `EngineRefusal`. */
export function parseGenerateBody(body: unknown, newRid: () => string): GenerateBody {
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw misfit("body", "a dictionary");
  const raw: Raw = { ...body };
  checkTypes(raw);
  const text = value(raw, "text");
  const inputIds = value(raw, "input_ids");
  if (text === undefined && inputIds === undefined) {
    if (value(raw, "input_embeds") === undefined) {
      throw new EngineRefusal("value", "Either text, input_ids or input_embeds should be provided.");
    }
    throw new EngineRefusal(
      "value",
      "input_embeds is provided while disable_radix_cache is False. Please add `--disable-radix-cache` when you " +
        "launch the server if you want to use input_embeds as inputs.",
    );
  }
  if (Array.isArray(inputIds) && text === undefined && inputIds.length === 0) {
    throw new EngineRefusal("value", "input_ids cannot be empty.");
  }
  const prompts = text ?? inputIds;
  if (raw.return_flat_raw_top_logprobs_b64 === true && raw.return_flat_raw_top_logprobs !== true) {
    throw new EngineRefusal("value", "return_flat_raw_top_logprobs_b64 requires return_flat_raw_top_logprobs.");
  }
  const batched = text !== undefined ? Array.isArray(text) : Array.isArray(prompts) && Array.isArray(prompts[0]);
  const count = batched && Array.isArray(prompts) ? prompts.length : 1;
  const samples = parallelSamples(value(raw, "sampling_params"));
  const single = !batched && samples === 1;
  const rids = requestIds(raw, { single, count, samples, newRid });
  const items: GenerateItem[] = [];
  for (let sample = 0; sample < samples; sample++) {
    for (let i = 0; i < count; i++) {
      items.push(item(raw, { batched, index: i, samples, rid: rids[sample * count + i]! }));
    }
  }
  return {
    single,
    samples,
    // SGLang answers all samples of a prompt before those of the next.
    items: samples === 1 ? items : items.map((_, at) => items[(at % samples) * count + Math.floor(at / samples)]!),
    groupRids: samples === 1 ? [] : groupRids(raw, count),
    stream: Boolean(raw.stream),
    background: Boolean(raw.background),
  };
}

function item(raw: Raw, at: Place & { readonly rid: string }): GenerateItem {
  const { index, samples } = at;
  const text = pick(value(raw, "text"), at);
  const inputIds = pick(value(raw, "input_ids"), at);
  const sampling = value(raw, "sampling_params");
  const samplingParams = Array.isArray(sampling) ? sampling[index] : sampling ?? {};
  if (typeof samplingParams !== "object" || samplingParams === null) throw indexError("sampling_params");
  return {
    rid: at.rid,
    text: typeof text === "string" ? text : null,
    inputIds: Array.isArray(inputIds) ? inputIds : null,
    samplingParams: { ...samplingParams },
    returnLogprob: Boolean(option(raw, "return_logprob", { fallback: false, index, samples })),
    logprobStartLen: Number(option(raw, "logprob_start_len", { fallback: -1, index, samples })),
    topLogprobsNum: Number(option(raw, "top_logprobs_num", { fallback: 0, index, samples })),
    flatTopLogprobs: flatForm(raw),
    tokenIdsLogprob: tokenIds(raw, at),
    returnTextInLogprobs: Boolean(raw.return_text_in_logprobs),
    returnPromptTokenIds: Boolean(raw.return_prompt_token_ids),
    returnRoutedExperts: Boolean(raw.return_routed_experts),
    routedExpertsStartLen: Number(value(raw, "routed_experts_start_len") ?? 0),
    stream: Boolean(raw.stream),
    cacheKey: ["extra_key", "cache_salt"].map((name) => cacheKeyPart(raw, name, at)).join("\u0000"),
  };
}

function flatForm(raw: Raw): GenerateItem["flatTopLogprobs"] {
  if (raw.return_flat_raw_top_logprobs !== true) return "off";
  return raw.return_flat_raw_top_logprobs_b64 === true ? "base64" : "numbers";
}

function requestIds(
  raw: Raw,
  options: { single: boolean; count: number; samples: number; newRid: () => string },
): string[] {
  const { single, count, samples, newRid } = options;
  const rid = value(raw, "rid");
  if (single) {
    if (rid === undefined) return [newRid()];
    if (typeof rid !== "string") throw new EngineRefusal("type", "unhashable type: 'list'");
    return [rid];
  }
  if (Array.isArray(rid)) {
    if (rid.length !== count) {
      throw new EngineRefusal(
        "value",
        "The specified rids length mismatch with the batch_size for batch processing.",
      );
    }
    const duplicates = [...new Set(rid.filter((entry, i) => rid.indexOf(entry) !== i))];
    if (duplicates.length > 0) {
      throw new EngineRefusal(
        "value",
        `Duplicate request IDs detected within the request: [${duplicates.map((entry) => `'${entry}'`).join(", ")}]`,
      );
    }
    if (samples === 1) return rid.map(String);
  }
  const total = count * samples;
  // With several samples the client's own ids are lost.
  if (samples > 1 || rid === undefined) return Array.from({ length: total }, newRid);
  return Array.from({ length: total }, (_, i) => `${String(rid)}_${i}`);
}

function groupRids(raw: Raw, count: number): string[] {
  const rid = value(raw, "rid");
  if (rid === undefined) return [];
  if (Array.isArray(rid)) return rid.map(String);
  return Array.from({ length: count }, (_, i) => `${String(rid)}_${i}`);
}

function parallelSamples(sampling: unknown): number {
  const all: unknown[] = Array.isArray(sampling) ? sampling : [sampling ?? {}];
  const counts = all.map((entry) => {
    const n = typeof entry === "object" && entry !== null && "n" in entry ? entry.n : undefined;
    if (n === undefined || n === null) return 1;
    if (typeof n !== "number") throw new EngineRefusal("type", "n is no number");
    return n;
  });
  if (counts.some((n) => n !== counts[0])) {
    throw new EngineRefusal(
      "value",
      "The parallel_sample_num should be the same for all samples in sample params.",
    );
  }
  return Math.max(1, Math.trunc(counts[0] ?? 1));
}

function option(
  raw: Raw,
  name: string,
  options: { fallback: boolean | number; index: number; samples: number },
): unknown {
  const given = value(raw, name);
  if (given === undefined) return options.fallback;
  if (!Array.isArray(given)) return given;
  if (options.samples > 1) {
    throw new EngineRefusal("value", `Cannot use list ${name} with parallel_sample_num > 1`);
  }
  if (options.index >= given.length) throw indexError(name);
  return given[options.index] ?? options.fallback;
}

function tokenIds(raw: Raw, { index, samples }: Place): number[] | null {
  const given = value(raw, "token_ids_logprob");
  if (!Array.isArray(given) || given.length === 0) return null;
  if (!Array.isArray(given[0])) return given;
  if (samples > 1) {
    throw new EngineRefusal("value", "Cannot use list token_ids_logprob with parallel_sample_num > 1");
  }
  if (index >= given.length) throw indexError("token_ids_logprob");
  const own: unknown = given[index];
  return Array.isArray(own) && own.length > 0 ? own : null;
}

function cacheKeyPart(raw: Raw, name: string, { batched, index }: Place): string {
  const given = value(raw, name);
  if (given === undefined) return "";
  if (!batched) {
    if (typeof given === "string") return given;
    throw new EngineRefusal("value", `${name} should be a string for a single request.`);
  }
  if (typeof given === "string") return given;
  if (!Array.isArray(given)) throw new EngineRefusal("value", `${name} should be a list or a string.`);
  const own: unknown = given[index];
  if (typeof own !== "string") throw new EngineRefusal("value", `Every ${name} should be a string.`);
  return own;
}

/** Null is absent. */
function value(raw: Raw, name: string): unknown {
  return raw[name] ?? undefined;
}

function pick(given: unknown, { batched, index }: Place): unknown {
  return batched && Array.isArray(given) ? given[index] : given;
}

function indexError(name: string): EngineRefusal {
  return new EngineRefusal("type", `${name}: list index out of range`);
}

function misfit(name: string, wanted: string): EngineRefusal {
  return new EngineRefusal("body", `1 validation error: ('body', '${name}'): Input should be ${wanted}`);
}

/** The types that the server's request class has; what it does not name is not looked at. */
function checkTypes(raw: Raw): void {
  const isText = (entry: unknown): boolean => typeof entry === "string";
  const isInteger = (entry: unknown): boolean => Number.isInteger(entry);
  const isFlag = (entry: unknown): boolean => typeof entry === "boolean";
  const isObject = (entry: unknown): boolean => typeof entry === "object" && entry !== null && !Array.isArray(entry);
  const isIntegers = (entry: unknown): boolean => Array.isArray(entry) && entry.every(isInteger);
  const fields: readonly [string, (entry: unknown) => boolean, string, lists: boolean][] = [
    ["text", isText, "a valid string or list of strings", true],
    ["input_ids", isIntegers, "a valid list of integers, or of such lists", true],
    ["sampling_params", isObject, "a valid dictionary or list of dictionaries", true],
    ["rid", isText, "a valid string or list of strings", true],
    ["return_logprob", isFlag, "a valid boolean or list of booleans", true],
    ["logprob_start_len", isInteger, "a valid integer or list of integers", true],
    ["top_logprobs_num", isInteger, "a valid integer or list of integers", true],
    ["token_ids_logprob", isIntegers, "a valid list of integers, or of such lists", true],
    ["return_flat_raw_top_logprobs", isFlag, "a valid boolean", false],
    ["return_flat_raw_top_logprobs_b64", isFlag, "a valid boolean", false],
    ["return_text_in_logprobs", isFlag, "a valid boolean", false],
    ["return_prompt_token_ids", isFlag, "a valid boolean", false],
    ["return_routed_experts", isFlag, "a valid boolean", false],
    ["routed_experts_start_len", isInteger, "a valid integer", false],
    ["stream", isFlag, "a valid boolean", false],
    ["background", isFlag, "a valid boolean", false],
  ];
  for (const [name, fits, wanted, lists] of fields) {
    const given = value(raw, name);
    if (given === undefined || fits(given)) continue;
    if (lists && Array.isArray(given) && given.every((entry) => entry === null ? name !== "text" : fits(entry))) {
      continue;
    }
    throw misfit(name, wanted);
  }
}
