/** Reads a whole top list in the form that engines write. What is in another form, or not right, it leaves to the careful reader. */

import { nearestFloat32 } from "./scan_decimal.ts";

const OPEN = 91;
const CLOSE = 93;
const COMMA = 44;
const MINUS = 45;
const PLUS = 43;
const DOT = 46;
const ZERO = 48;
const SMALL_E = 101;
/** `,nul` and `l]` as little-endian numbers. */
const COMMA_NUL = 0x6c756e2c;
const L_CLOSE = 0x5d6c;
/** Longer runs of digits are left to the careful reader, which keeps an entry within its longest. */
const LONGEST_WHOLE = 9;
const LONGEST_DECIMALS = 24;
const LONGEST_EXPONENT = 3;
/** More than an entry has: digits of the three kinds, an id, and what stands between them. */
const LONGEST_ENTRY_BYTES = 64;

/** What a row is held to. */
export interface CompactRowOptions {
  readonly topK: number;
  readonly vocabSize: number;
  /** Per id, the mark of the last row that had it. */
  readonly seenInRow: Uint32Array;
}

/** One table's rows. Millions of entries pass through one loop: it makes nothing and calls nothing that is not inlined. */
export class CompactRowReader {
  readonly #topK: number;
  readonly #vocabSize: number;
  readonly #seenInRow: Uint32Array;

  constructor(options: CompactRowOptions) {
    this.#topK = options.topK;
    this.#vocabSize = options.vocabSize;
    this.#seenInRow = options.seenInRow;
  }

  /**
   * Reads `[[logprob,id,null],...]` at `start`: exactly K entries, logprobs finite and not rising, ids below the
   * vocabulary and each once. They are written from `first` on. Where the row ends, or -1: then it is not whole, not of
   * this form, or not right, and what was written does not count. `mark` must be unlike any other row's.
   */
  read(
    view: DataView,
    start: number,
    mark: number,
    indices: Int32Array,
    logprobs: Float32Array,
    first: number,
  ): number {
    const topK = this.#topK;
    const vocabSize = this.#vocabSize;
    const seenInRow = this.#seenInRow;
    // From here on no read can pass the end.
    if (view.byteLength - start < (topK + 1) * LONGEST_ENTRY_BYTES || view.getUint8(start) !== OPEN) return -1;
    let at = start + 1;
    let previous = Infinity;
    for (let k = 0; k < topK; k++) {
      if (view.getUint8(at++) !== OPEN) return -1;
      let byte = view.getUint8(at);
      const negative = byte === MINUS;
      if (negative) byte = view.getUint8(++at);
      // The digits make a double; what it loses of the last ones is within the doubt of the nearest float32.
      let mantissa = 0;
      const firstDigit = at;
      for (let digit = byte - ZERO; digit >= 0 && digit <= 9; digit = byte - ZERO) {
        if (at - firstDigit >= LONGEST_WHOLE) return -1;
        mantissa = mantissa * 10 + digit;
        byte = view.getUint8(++at);
      }
      const digits = at - firstDigit;
      if (digits === 0 || (digits > 1 && view.getUint8(firstDigit) === ZERO)) return -1;
      let scale = 0;
      if (byte === DOT) {
        const firstDecimal = ++at;
        for (let four = view.getUint32(at, true) - 0x30303030; isDigits(four); at += 4) {
          if (at - firstDecimal >= LONGEST_DECIMALS - 4) return -1;
          const pairs = Math.imul(four, 10) + (four >>> 8);
          mantissa = mantissa * 10000 + (pairs & 0xff) * 100 + ((pairs >>> 16) & 0xff);
          four = view.getUint32(at + 4, true) - 0x30303030;
        }
        byte = view.getUint8(at);
        for (let digit = byte - ZERO; digit >= 0 && digit <= 9; digit = byte - ZERO) {
          mantissa = mantissa * 10 + digit;
          byte = view.getUint8(++at);
        }
        scale = firstDecimal - at;
        if (scale === 0) return -1;
      }
      if (byte === SMALL_E) {
        byte = view.getUint8(++at);
        const sign = byte;
        if (sign === MINUS || sign === PLUS) byte = view.getUint8(++at);
        let exponent = 0;
        const firstOfExponent = at;
        for (let digit = byte - ZERO; digit >= 0 && digit <= 9; digit = byte - ZERO) {
          if (at - firstOfExponent >= LONGEST_EXPONENT) return -1;
          exponent = exponent * 10 + digit;
          byte = view.getUint8(++at);
        }
        if (at === firstOfExponent) return -1;
        scale += sign === MINUS ? -exponent : exponent;
      }
      if (byte !== COMMA) return -1;
      const size = nearestFloat32(mantissa, scale);
      const logprob = negative ? -size : size;
      // One that can't be told is NaN.
      if (!(logprob <= previous && logprob > -Infinity && logprob < Infinity)) return -1;
      previous = logprob;
      byte = view.getUint8(++at);
      let id = 0;
      const firstOfId = at;
      for (let digit = byte - ZERO; digit >= 0 && digit <= 9; digit = byte - ZERO) {
        if (at - firstOfId >= LONGEST_WHOLE) return -1;
        id = (Math.imul(id, 10) + digit) | 0;
        byte = view.getUint8(++at);
      }
      if (at === firstOfId || id >= vocabSize || seenInRow[id] === mark) return -1;
      seenInRow[id] = mark;
      if (view.getUint32(at, true) !== COMMA_NUL || view.getUint16(at + 4, true) !== L_CLOSE) return -1;
      if (view.getUint8(at + 6) !== (k === topK - 1 ? CLOSE : COMMA)) return -1;
      at += 7;
      indices[first + k] = id;
      logprobs[first + k] = logprob;
    }
    return at;
  }
}

/** Whether each of four bytes, after `0` was taken off each, is one of 0 to 9. */
function isDigits(four: number): boolean {
  return (((four + 0x76767676) | four) & 0x80808080) === 0;
}
