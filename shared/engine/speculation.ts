/** What speculative decoding would have done for a reply: its counters as SGLang names them. It changes no token. */

import { mix } from "./hashing.ts";

/** The counters of `meta_info`; none where there was no round, as in SGLang. */
export function speculationFields(outputIds: readonly number[], draftTokens: number): Record<string, number> {
  let rounds = 0;
  let accepted = 0;
  // The first token comes from the prompt. Each round keeps some drafts and adds one token of the model's own.
  for (let done = 1; done < outputIds.length; rounds++) {
    const kept = Math.min(mix(outputIds[done]!, done) % (draftTokens + 1), outputIds.length - done - 1);
    accepted += kept;
    done += kept + 1;
  }
  if (rounds === 0) return {};
  return {
    spec_verify_ct: rounds,
    spec_accept_token_num: accepted,
    spec_draft_token_num: rounds * draftTokens,
    spec_accept_rate: accepted / (rounds * draftTokens),
    spec_accept_length: outputIds.length / rounds,
  };
}
