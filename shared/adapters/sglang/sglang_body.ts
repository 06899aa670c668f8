/** Bodies of SGLang's `/generate`, and the JSON of its answers. It sends nothing. */

import { TokenSeries } from "../../core/token_series.ts";
import type { EngineRequest, ScoreRequest } from "../../ports/engine.ts";
import { inconsistent } from "./engine_failure.ts";
import { extraFields } from "./sglang_extras.ts";

/** An attempt's id on the engine. Suffixes have one length, so that no attempt's id is a prefix of another's. */
export function attemptId(rid: string, tries: number): string {
  return `${rid}-${String(tries).padStart(4, "0")}`;
}

/** The body; the ids come from the series' kept JSON text and are not serialised again. */
export function generateBody(request: EngineRequest, rid: string): Uint8Array<ArrayBuffer> {
  const extras = extraFields(request.extras ?? {});
  const customParams = { ...request.sampling.custom_params, ...extras.customParams };
  const rest = JSON.stringify({
    rid,
    sampling_params: {
      ...request.sampling,
      skip_special_tokens: false,
      ...(Object.keys(customParams).length === 0 ? {} : { custom_params: customParams }),
    },
    return_logprob: true,
    logprob_start_len: -1,
    ...(request.topLogprobs === undefined ? {} : { top_logprobs_num: request.topLogprobs }),
    stream: request.stream,
    ...extras.body,
  });
  return bodyOf(request.input, rest);
}

/** One greedy step over prompt and response; logprobs from the prompt's last position, so that its prefix may be cached. */
export function scoreBody(request: ScoreRequest, rid: string): Uint8Array<ArrayBuffer> {
  const rest = JSON.stringify({
    rid,
    sampling_params: { max_new_tokens: 1, temperature: 0, skip_special_tokens: false },
    return_logprob: true,
    logprob_start_len: request.prompt.length - 1,
    stream: false,
  });
  return bodyOf(TokenSeries.of(request.prompt).append(request.response), rest);
}

/** `rest`: the body's other fields as a JSON object. */
function bodyOf(input: TokenSeries, rest: string): Uint8Array<ArrayBuffer> {
  return input.jsonBetween('{"input_ids":[', `],${rest.slice(1)}`);
}

/** A reply or frame. */
export function parseReply(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw inconsistent("The engine's reply is not JSON", {}, cause);
  }
}
