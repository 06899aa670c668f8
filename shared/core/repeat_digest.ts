/** What makes a request the same request again. Stream, dialect, metadata and how things were written do not count. */

import { digestOf } from "./digest.ts";
import { type RequestUnits, valueDigest } from "./request_units.ts";
import type { SamplingParams } from "./sampling.ts";

/**
 * Digest over units, tools, template settings, the sampling that will be in effect and the choice of tools, as hex.
 * `sampling` holds engine names; order of keys does not count, a parameter that is undefined is absent.
 */
export function repeatDigest(
  request: RequestUnits,
  sampling: SamplingParams,
  options: { readonly toolChoice?: string | { readonly name: string } } = {},
): string {
  const { toolChoice = "auto" } = options;
  return digestOf(
    request.chain.at(-1) ?? "",
    request.toolsDigest,
    request.settingsDigest,
    valueDigest(JSON.parse(JSON.stringify(sampling))),
    typeof toolChoice === "string" ? toolChoice : `tool ${toolChoice.name}`,
  );
}
