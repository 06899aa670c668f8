/** Tokens that nobody sampled, ended where an engine would have ended them. It knows no engine. */

import type { SamplingParams } from "../../core/sampling.ts";
import type { Finish } from "../../core/turn.ts";
import type { Tokenizer } from "../../ports/tokenizer.ts";

/** Tokens up to their stop, itself among them. */
export interface CutTokens {
  readonly ids: Uint32Array;
  readonly finish: Extract<Finish, { readonly type: "stop" }>;
}

/** The tokens up to the first stop token, or the token that completes the first stop string; null where nothing ends them. */
export function cutAtStop(
  ids: Uint32Array,
  stops: Pick<SamplingParams, "stop" | "stop_token_ids">,
  tokenizer: Tokenizer,
): CutTokens | null {
  const stopIds = new Set(stops.stop_token_ids);
  const strings = (stops.stop ?? []).filter((stop) => stop !== "");
  const longest = Math.max(1, ...strings.map((stop) => stop.length));
  const decoder = tokenizer.decoder();
  let text = "";
  for (const [at, id] of ids.entries()) {
    if (stopIds.has(id)) return { ids: ids.slice(0, at + 1), finish: { type: "stop", matched: id } };
    // Of what was looked at before, a stop string can hold all but its last character.
    text = text.slice(Math.max(0, text.length - longest + 1)) + decoder.push(id);
    const matched = strings.find((stop) => text.includes(stop));
    if (matched !== undefined) return { ids: ids.slice(0, at + 1), finish: { type: "stop", matched } };
  }
  return null;
}
