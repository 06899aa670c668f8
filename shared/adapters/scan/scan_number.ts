/** Reads JSON numbers from bytes without making text of them. It does not know what they count. */

import { DIGITS_OF_GROUP, nearestDouble, nearestFloat32 } from "./scan_decimal.ts";

const ZERO = 48;
const NINE = 57;
const MINUS = 45;
const PLUS = 43;
const DOT = 46;
const SMALL_E = 101;
const LARGE_E = 69;
/** What was wrong: nothing, the bytes end within the number, or they are no JSON number. */
export type NumberEnd = "whole" | "cut" | "bad";

/**
 * Reads one number and keeps it. A number counts as whole only if a byte follows that ends it; the reader is made once
 * and used for millions of numbers, so nothing is allocated for one.
 */
export class NumberReader {
  /** Where the last read ended: after the number, or where it was found to be none. */
  at = 0;
  readonly #value = new Float64Array(1);

  /** The last number. */
  get value(): number {
    return this.#value[0]!;
  }

  /** Reads the number at `start`. `float32`: the nearest float32 is enough, and found faster. The same as `JSON.parse` either way. */
  read(bytes: Uint8Array, start: number, options: { readonly float32: boolean }): NumberEnd {
    const end = bytes.length;
    let at = start;
    const negative = bytes[at] === MINUS;
    if (negative) at++;
    const firstDigit = at;
    let high = 0;
    let low = 0;
    let lowDigits = 0;
    let scale = 0;
    let byte = 0;
    for (; at < end; at++) {
      byte = bytes[at]!;
      if (byte < ZERO || byte > NINE) break;
      high = (Math.imul(high, 10) + byte - ZERO) | 0;
    }
    if (at === end) return this.#end(at, "cut");
    let highDigits = at - firstDigit;
    if (highDigits === 0 || (highDigits > 1 && bytes[firstDigit] === ZERO)) return this.#end(at, "bad");
    let isLong = highDigits > DIGITS_OF_GROUP;
    if (byte === DOT) {
      const firstDecimal = ++at;
      if (high === 0) {
        highDigits = 0;
        while (bytes[at] === ZERO) at++;
      }
      for (; at < end && highDigits < DIGITS_OF_GROUP; at++, highDigits++) {
        byte = bytes[at]!;
        if (byte < ZERO || byte > NINE) break;
        high = (Math.imul(high, 10) + byte - ZERO) | 0;
      }
      if (highDigits >= DIGITS_OF_GROUP) {
        for (; at < end; at++, lowDigits++) {
          byte = bytes[at]!;
          if (byte < ZERO || byte > NINE) break;
          low = (Math.imul(low, 10) + byte - ZERO) | 0;
        }
        isLong ||= lowDigits > DIGITS_OF_GROUP;
      }
      if (at === end) return this.#end(at, "cut");
      scale = firstDecimal - at;
      if (scale === 0) return this.#end(at, "bad");
      byte = bytes[at]!;
    }
    if (byte === SMALL_E || byte === LARGE_E) {
      at++;
      const sign = bytes[at];
      if (sign === MINUS || sign === PLUS) at++;
      const firstOfExponent = at;
      let exponent = 0;
      for (; at < end; at++) {
        byte = bytes[at]!;
        if (byte < ZERO || byte > NINE) break;
        exponent = Math.min(exponent * 10 + (byte - ZERO), 1e6);
      }
      if (at === end) return this.#end(at, "cut");
      if (at === firstOfExponent) return this.#end(at, "bad");
      scale += sign === MINUS ? -exponent : exponent;
    }
    const size = isLong
      ? NaN
      : options.float32
      ? nearestFloat32(high * 10 ** lowDigits + low, scale)
      : nearestDouble(high, low, lowDigits, scale);
    if (size === size) {
      this.#value[0] = negative ? -size : size;
      return this.#end(at, "whole");
    }
    this.#value[0] = Number(String.fromCharCode(...bytes.subarray(start, at)));
    return this.#end(at, "whole");
  }

  #end(at: number, how: NumberEnd): NumberEnd {
    this.at = at;
    return how;
  }
}
