/** Token ids in sampling parameters, checked before an engine sees them: SGLang may die of an id outside its vocabulary. */

import { checkedIds } from "../../core/checked_ids.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { SamplingParams } from "../../core/sampling.ts";

/** An id outside [0, vocabSize) is `token_out_of_range`. `prefix` stands before the parameter's name: `sampling_params.`. */
export function checkSamplingIds(sampling: SamplingParams, vocabSize: number, prefix: string): void {
  checkedIds(sampling.stop_token_ids ?? [], vocabSize, `${prefix}stop_token_ids`);
  for (const id of Object.keys(sampling.logit_bias ?? {})) {
    if (Number(id) < vocabSize) continue;
    const field = `${prefix}logit_bias.${id}`;
    throw new VerbatimError("token_out_of_range", `Token id ${id} at ${field} is outside [0, ${vocabSize})`, {
      details: { field, id: Number(id), vocab_size: vocabSize },
    });
  }
}
