/** Reads JSON numbers from bytes without making text of them. It does not know what they count. */

const ZERO = 48;
const NINE = 57;
const MINUS = 45;
const PLUS = 43;
const DOT = 46;
const SMALL_E = 101;
const LARGE_E = 69;
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));
/** Up to this many digits a decimal is a double without rounding. */
const EXACT_DIGITS = 15;
/** Up to this many digits the double below is off by a few units of its last place at most. */
const MOST_DIGITS = 19;
/** More than the error of such a double. */
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
    let mantissa = 0;
    let digits = 0;
    let scale = 0;
    let byte = 0;
    for (; at < end; at++) {
      byte = bytes[at]!;
      if (byte < ZERO || byte > NINE) break;
      mantissa = mantissa * 10 + (byte - ZERO);
      if (mantissa !== 0) digits++;
    }
    if (at === end) return this.#end(at, "cut");
    if (at === firstDigit || (at > firstDigit + 1 && bytes[firstDigit] === ZERO)) return this.#end(at, "bad");
    if (byte === DOT) {
      const firstDecimal = ++at;
      for (; at < end; at++) {
        byte = bytes[at]!;
        if (byte < ZERO || byte > NINE) break;
        mantissa = mantissa * 10 + (byte - ZERO);
        if (mantissa !== 0) digits++;
      }
      if (at === end) return this.#end(at, "cut");
      scale = firstDecimal - at;
      if (scale === 0) return this.#end(at, "bad");
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
    if (scale >= -22 && scale <= 22 && digits <= MOST_DIGITS) {
      const size = scale < 0 ? mantissa / POWERS[-scale]! : mantissa * POWERS[scale]!;
      // Mantissa and power are both exact, so one rounding makes the nearest double.
      if (digits <= EXACT_DIGITS) {
        this.#value[0] = negative ? -size : size;
        return this.#end(at, "whole");
      }
      const nearest = Math.fround(size * (1 - DOUBT));
      if (options.float32 && nearest === Math.fround(size * (1 + DOUBT))) {
        this.#value[0] = negative ? -nearest : nearest;
        return this.#end(at, "whole");
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
