/** Token ids from outside, checked before an engine sees them: SGLang may die of an id outside its vocabulary. */

import { VerbatimError } from "./errors.ts";

/** The ids as an array. An id outside [0, vocabSize) is `token_out_of_range`, naming `field` and index. */
export function checkedIds(ids: readonly number[], vocabSize: number, field: string): Uint32Array {
  const at = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (at === -1) return Uint32Array.from(ids);
  throw new VerbatimError("token_out_of_range", `Token id ${ids[at]} at ${field}.${at} is outside [0, ${vocabSize})`, {
    details: { field: `${field}.${at}`, id: ids[at], vocab_size: vocabSize },
  });
}
