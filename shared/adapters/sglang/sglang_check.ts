/** What is asked of a request before it is sent: a bad one may kill an engine, or count against its worker. */

import { VerbatimError } from "../../core/errors.ts";
import type { EngineRequest } from "../../ports/engine.ts";
import { isOlder, youngParameters } from "./sglang_release.ts";
import type { SglangWorkers } from "./sglang_workers.ts";

/** Throws where an engine must not be given this request. Asks the workers who they are where that matters. */
export async function checkRequest(
  { input, sampling }: EngineRequest,
  { vocabSize, workers }: { readonly vocabSize: number; readonly workers: SglangWorkers },
): Promise<void> {
  if (input.length === 0) throw new VerbatimError("invalid_request", "There is no token to go on from");
  if (input.highest >= vocabSize) {
    throw new VerbatimError("token_out_of_range", `Token id ${input.highest} is outside [0, ${vocabSize})`, {
      details: { id: input.highest, vocab_size: vocabSize },
    });
  }
  // Without a limit of ours SGLang's own holds, which is 128 tokens.
  if (sampling.max_new_tokens === undefined) throw new Error("A request to an engine names its max_new_tokens");
  const young = youngParameters(sampling);
  const releases = young.length === 0 ? [] : await workers.releases();
  for (const { parameter, since } of young) {
    const old = releases.find((release) => isOlder(release, since));
    if (old === undefined) continue;
    throw new VerbatimError("unsupported", `${parameter} takes SGLang ${since}; the engine is ${old}`, {
      details: { field: parameter, engine_version: old },
    });
  }
}
