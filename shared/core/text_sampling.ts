/** Which of SGLang's sampling parameters an API of text has, for backends without tokens. It does not send any. */

import { VerbatimError } from "./errors.ts";
import type { SamplingParams } from "./sampling.ts";

/** Those that chat APIs have, under whatever name. */
const TAKEN: ReadonlySet<string> = new Set(
  [
    "max_new_tokens",
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "stop",
    "json_schema",
    "sampling_seed",
  ] satisfies (keyof SamplingParams)[],
);

/** Values of the others that change nothing. */
const NEUTRAL: SamplingParams = {
  min_new_tokens: 0,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  ignore_eos: false,
  skip_special_tokens: false,
  spaces_between_special_tokens: true,
  no_stop_trim: false,
};

/** Throws `unsupported` for a parameter that would have no effect. `path` stands before field names. */
export function checkTextSampling(params: SamplingParams, path: string): void {
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined || TAKEN.has(name) || value === NEUTRAL[name as keyof SamplingParams]) continue;
    if (typeof value === "object" && Object.keys(value).length === 0) continue;
    const field = `${path}${name}`;
    const reason = "a text-level backend has no such parameter";
    throw new VerbatimError("unsupported", `Field "${field}": ${reason}`, { details: { field, reason } });
  }
}
