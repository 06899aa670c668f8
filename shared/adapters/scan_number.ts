/** Reads JSON numbers from bytes without making text of them. It does not know what they count. */

const ZERO = 48;
const NINE = 57;
const MINUS = 45;
const PLUS = 43;
const DOT = 46;
const SMALL_E = 101;
const LARGE_E = 69;
const POWERS = Float64Array.from({ length: 61 }, (_, exponent) => Number(`1e${exponent}`));
/** Up to this power of ten a double is exact. */
const EXACT_POWER = 22;
/** Up to this many digits a decimal is a double without rounding. */
const EXACT_DIGITS = 15;
/** Digits are gathered by nines, as small integers. */
const GROUP = 9;
/** More than the error of a double made of two groups and one power of ten. */
const DOUBT = 2 ** -48;

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
    let isLong = highDigits > GROUP;
    if (byte === DOT) {
      const firstDecimal = ++at;
      if (high === 0) {
        highDigits = 0;
        while (bytes[at] === ZERO) at++;
      }
      for (; at < end && highDigits < GROUP; at++, highDigits++) {
        byte = bytes[at]!;
        if (byte < ZERO || byte > NINE) break;
        high = (Math.imul(high, 10) + byte - ZERO) | 0;
      }
      if (highDigits >= GROUP) {
        for (; at < end; at++, lowDigits++) {
          byte = bytes[at]!;
          if (byte < ZERO || byte > NINE) break;
          low = (Math.imul(low, 10) + byte - ZERO) | 0;
        }
        isLong ||= lowDigits > GROUP;
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
    if (!isLong && scale >= -60 && scale <= 60) {
      const mantissa = lowDigits === 0 ? high : high * POWERS[lowDigits]! + low;
      const size = scale < 0 ? mantissa / POWERS[-scale]! : mantissa * POWERS[scale]!;
      // Where mantissa and power are both exact, one rounding makes the nearest double.
      if (highDigits + lowDigits <= EXACT_DIGITS && scale >= -EXACT_POWER && scale <= EXACT_POWER) {
        this.#value[0] = negative ? -size : size;
        return this.#end(at, "whole");
      }
      if (options.float32) {
        const nearest = Math.fround(size * (1 - DOUBT));
        if (nearest === Math.fround(size * (1 + DOUBT))) {
          this.#value[0] = negative ? -nearest : nearest;
          return this.#end(at, "whole");
        }
      }
    }
    this.#value[0] = Number(String.fromCharCode(...bytes.subarray(start, at)));
    return this.#end(at, "whole");
  }

  #end(at: number, how: NumberEnd): NumberEnd {
    this.at = at;
    return how;
  }
}
