/** The merge loop of BPE: bytes or ids to ids by the ranks of a table. It knows neither text nor pre-tokenisation. */

import { type BpeData, mergeSlot } from "./hf_bpe_data.ts";

/** Below this a scan for the lowest rank is faster than a heap. */
const SCAN_LIMIT = 48;
const NONE = 0xffffffff;
/** A heap entry is `rank * POSITIONS + position`: lowest rank first, then leftmost. */
const POSITIONS = 2 ** 32;

export class BpeMerger {
  readonly #byteIds: Uint32Array;
  readonly #table: Uint32Array;
  readonly #mask: number;
  readonly #wrap: number;
  #symbols = new Uint32Array(256);
  #ranks = new Uint32Array(256);

  constructor(data: Pick<BpeData, "byteIds" | "mergeTable">) {
    this.#byteIds = data.byteIds;
    this.#table = data.mergeTable;
    this.#mask = data.mergeTable.length / 4 - 1;
    this.#wrap = data.mergeTable.length - 1;
  }

  /** The ids of the first `length` bytes, valid until the next call. */
  merge(bytes: Uint8Array, length: number): Uint32Array {
    this.#reserve(length);
    const symbols = this.#symbols;
    for (let index = 0; index < length; index++) symbols[index] = this.#byteIds[bytes[index]!]!;
    return this.#merge(length);
  }

  /** The ids that the first `length` ids merge to, valid until the next call. */
  mergeIds(ids: Uint32Array, length: number): Uint32Array {
    this.#reserve(length);
    this.#symbols.set(ids.subarray(0, length));
    return this.#merge(length);
  }

  #reserve(length: number): void {
    if (this.#symbols.length >= length) return;
    this.#symbols = new Uint32Array(length * 2);
    this.#ranks = new Uint32Array(length * 2);
  }

  #merge(length: number): Uint32Array {
    return length <= SCAN_LIMIT ? this.#scan(length) : this.#heap(length);
  }

  /** The slot of a pair, or -1. */
  #slot(left: number, right: number): number {
    const table = this.#table;
    let slot = mergeSlot(left, right, this.#mask) * 4;
    while (table[slot + 2] !== 0) {
      if (table[slot] === left && table[slot + 1] === right) return slot;
      slot = (slot + 4) & this.#wrap;
    }
    return -1;
  }

  #rank(left: number, right: number): number {
    const slot = this.#slot(left, right);
    return slot < 0 ? NONE : this.#table[slot + 2]! - 1;
  }

  #merged(left: number, right: number): number {
    return this.#table[this.#slot(left, right) + 3]!;
  }

  #scan(length: number): Uint32Array {
    const symbols = this.#symbols;
    const ranks = this.#ranks;
    let size = length;
    for (let index = 0; index + 1 < size; index++) ranks[index] = this.#rank(symbols[index]!, symbols[index + 1]!);
    while (size > 1) {
      let best = NONE;
      let at = -1;
      for (let index = 0; index + 1 < size; index++) {
        if (ranks[index]! < best) {
          best = ranks[index]!;
          at = index;
        }
      }
      if (at < 0) break;
      symbols[at] = this.#merged(symbols[at]!, symbols[at + 1]!);
      symbols.copyWithin(at + 1, at + 2, size);
      ranks.copyWithin(at + 1, at + 2, size);
      size--;
      if (at > 0) ranks[at - 1] = this.#rank(symbols[at - 1]!, symbols[at]!);
      if (at + 1 < size) ranks[at] = this.#rank(symbols[at]!, symbols[at + 1]!);
    }
    return symbols.subarray(0, size);
  }

  /** Long runs without a boundary: a linked list and a heap, so that time stays near linear. */
  #heap(length: number): Uint32Array {
    const symbols = this.#symbols;
    const next = new Int32Array(length + 1);
    const previous = new Int32Array(length + 1);
    // A merge adds at most one more entry than it takes away.
    const heap = new MinHeap(length * 3);
    const offer = (left: number) => {
      const right = next[left]!;
      if (right >= length) return;
      const rank = this.#rank(symbols[left]!, symbols[right]!);
      if (rank !== NONE) heap.push(rank * POSITIONS + left);
    };
    for (let index = 0; index < length; index++) {
      next[index] = index + 1;
      previous[index] = index - 1;
    }
    for (let index = 0; index + 1 < length; index++) offer(index);
    const gone = new Uint8Array(length);
    while (heap.size > 0) {
      const entry = heap.pop();
      const left = entry % POSITIONS;
      const right = next[left]!;
      // An entry is stale where either side has been merged since.
      if (gone[left] === 1 || right >= length) continue;
      if (this.#rank(symbols[left]!, symbols[right]!) !== (entry - left) / POSITIONS) continue;
      symbols[left] = this.#merged(symbols[left]!, symbols[right]!);
      gone[right] = 1;
      const after = next[right]!;
      next[left] = after;
      if (after < length) previous[after] = left;
      if (previous[left]! >= 0) offer(previous[left]!);
      offer(left);
    }
    let size = 0;
    for (let index = 0; index < length; index = next[index]!) symbols[size++] = symbols[index]!;
    return symbols.subarray(0, size);
  }
}

class MinHeap {
  #entries: Float64Array;
  size = 0;

  constructor(capacity: number) {
    this.#entries = new Float64Array(capacity);
  }

  push(entry: number): void {
    const entries = this.#entries;
    let index = this.size++;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (entries[parent]! <= entry) break;
      entries[index] = entries[parent]!;
      index = parent;
    }
    entries[index] = entry;
  }

  pop(): number {
    const entries = this.#entries;
    const top = entries[0]!;
    const last = entries[--this.size]!;
    let index = 0;
    while (true) {
      let child = index * 2 + 1;
      if (child >= this.size) break;
      if (child + 1 < this.size && entries[child + 1]! < entries[child]!) child++;
      if (entries[child]! >= last) break;
      entries[index] = entries[child]!;
      index = child;
    }
    entries[index] = last;
    return top;
  }
}
