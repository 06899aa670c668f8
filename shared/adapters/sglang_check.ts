/** What is asked of a request before it is sent: a bad one may kill an engine, or count against its worker. */

import { VerbatimError } from "../core/errors.ts";
import type { EngineRequest } from "../ports/engine.ts";

/** Throws where an engine must not be given this request. */
export function checkRequest({ input, sampling }: EngineRequest, vocabSize: number): void {
  if (input.length === 0) throw new VerbatimError("invalid_request", "There is no token to go on from");
  if (input.highest >= vocabSize) {
    throw new VerbatimError("token_out_of_range", `Token id ${input.highest} is outside [0, ${vocabSize})`, {
      details: { id: input.highest, vocab_size: vocabSize },
    });
  }
  // Without a limit of ours SGLang's own holds, which is 128 tokens.
  if (sampling.max_new_tokens === undefined) throw new Error("A request to an engine names its max_new_tokens");
}
