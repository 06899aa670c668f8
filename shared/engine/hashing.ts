/** Small integer hashes, the only source of the model's arbitrariness. They know nothing of tokens. */

/** Mixes one more integer into a 32-bit state. Full avalanche; a pure function of both. */
export function mix(state: number, value: number): number {
  let h = Math.imul(state ^ value, 0x9e3779b1);
  h ^= h >>> 15;
  h = Math.imul(h, 0x85ebca77);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae3d);
  h ^= h >>> 16;
  return h >>> 0;
}

/** A number in [0, 1) with 32 random bits. */
export function unit(hash: number): number {
  return hash / 4294967296;
}

/** A number in [0, 1) with 53 random bits of two hashes. */
export function unit53(high: number, low: number): number {
  return ((high >>> 5) * 67108864 + (low >>> 6)) / 9007199254740992;
}

/** Two independent 32-bit hashes of a stretch of ids, as a map key. */
export function hashIds(ids: Uint32Array): string {
  let first = 0x243f6a88;
  let second = 0x85a308d3;
  for (const id of ids) {
    first = mix(first, id);
    second = mix(second, id + 0x13198a2e);
  }
  return `${ids.length}:${first}:${second}`;
}
