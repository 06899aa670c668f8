/** Top lists of the input as two flat arrays, numbers or base64: the compact form of `/generate`. It computes nothing. */

import { Buffer } from "node:buffer";
import type { LogprobEntry } from "./generation.ts";

/** The fields that stand in the place of `input_top_logprobs`. `width` is K; the first rows may be null. */
export function flatTopLogprobs(
  rows: readonly (readonly LogprobEntry[] | null)[],
  options: { readonly width: number; readonly form: "numbers" | "base64" },
): Record<string, unknown> {
  const lists = rows.filter((row) => row !== null);
  const entries = lists.flat();
  const shape = {
    input_top_logprobs_shape: [lists.length, lists[0]?.length ?? options.width],
    input_top_logprobs_null_prefix: rows.length - lists.length,
  };
  if (options.form === "numbers") {
    return {
      input_top_logprobs_val_flat: entries.map(([logprob]) => logprob),
      input_top_logprobs_idx_flat: entries.map(([, id]) => id),
      ...shape,
    };
  }
  const words = (set: (view: DataView, at: number, entry: LogprobEntry) => void): string => {
    const view = new DataView(new ArrayBuffer(entries.length * 4));
    for (const [at, entry] of entries.entries()) set(view, at * 4, entry);
    return Buffer.from(view.buffer).toString("base64");
  };
  return {
    input_top_logprobs_val_flat_b64: words((view, at, [logprob]) => view.setFloat32(at, logprob ?? NaN, true)),
    input_top_logprobs_idx_flat_b64: words((view, at, [, id]) => view.setInt32(at, id, true)),
    input_top_logprobs_val_flat_b64_dtype: "float32",
    input_top_logprobs_idx_flat_b64_dtype: "int32",
    ...shape,
  };
}
