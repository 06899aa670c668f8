/** Which experts each position of a sequence is routed to: a fixed function of the ids up to that position. It knows no requests. */

import { mix } from "./hashing.ts";

/** A mixture of experts. */
export interface ExpertShape {
  readonly layers: number;
  /** Experts chosen by each layer, all different. */
  readonly topK: number;
  /** Experts of a layer. */
  readonly experts: number;
}

/** Rows of `layers * topK` expert ids for the positions `from` (inclusive) to `to` (exclusive) of `ids`. */
export function routedExperts(
  ids: Uint32Array,
  range: { readonly from: number; readonly to: number },
  shape: ExpertShape,
): Int32Array<ArrayBuffer> {
  const { layers, topK, experts } = shape;
  const rows = new Int32Array(Math.max(0, range.to - range.from) * layers * topK);
  let prefix = 0x51ed270b;
  let at = 0;
  for (let position = 0; position < range.to; position++) {
    prefix = mix(prefix, ids[position]!);
    if (position < range.from) continue;
    for (let layer = 0; layer < layers; layer++) {
      const first = mix(prefix, layer);
      // Neighbours of a random expert, in a ring: different as long as there are enough.
      for (let k = 0; k < topK; k++) rows[at++] = (first + k) % experts;
    }
  }
  return rows;
}
