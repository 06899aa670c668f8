/** Reads force-decoded logprobs from a reply and checks them position by position (the index law of input logprobs). */

import type { ScoreRequest } from "../../ports/engine.ts";
import { inconsistent } from "./engine_failure.ts";
import { failureOfAbort, isObject } from "./sglang_failure.ts";

/**
 * With `logprob_start_len` at the prompt's last token, entry 0 is that token without a logprob and entry k + 1 is
 * response token k given all before it. Returns R values, float64, finite.
 */
export function checkScores(reply: unknown, request: ScoreRequest): Float64Array {
  const meta = isObject(reply) && isObject(reply.meta_info) ? reply.meta_info : {};
  const finish = isObject(meta.finish_reason) ? meta.finish_reason : null;
  if (finish?.type === "abort") throw failureOfAbort(finish);
  const entries = meta.input_token_logprobs;
  if (!Array.isArray(entries)) throw inconsistent("The engine's reply has no input logprobs");
  const expected = request.response.length + 1;
  if (entries.length !== expected) {
    throw inconsistent(`The engine scored ${entries.length} positions where ${expected} were asked for`);
  }
  const scores = new Float64Array(request.response.length);
  for (let j = 0; j < expected; j++) {
    const entry: unknown = entries[j];
    if (!Array.isArray(entry)) throw inconsistent("A logprob entry is not a list", { position: j });
    const [logprob, id] = entry;
    const wanted = j === 0 ? request.prompt[request.prompt.length - 1] : request.response[j - 1];
    if (id !== wanted) {
      throw inconsistent(`Score ${j} is of id ${String(id)}, not of ${String(wanted)}`, { position: j });
    }
    if (j === 0) {
      if (logprob !== null) throw inconsistent("The first score has a logprob where none can be", { position: 0 });
    } else if (typeof logprob !== "number" || !Number.isFinite(logprob)) {
      throw inconsistent(`Score ${j} is ${String(logprob)}`, { position: j });
    } else {
      scores[j - 1] = logprob;
    }
  }
  return scores;
}
