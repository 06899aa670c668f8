/** From the digits of a decimal to its nearest binary number, where that takes no text. It does not know where the digits stood. */

const POWERS = Float64Array.from({ length: 61 }, (_, exponent) => Number(`1e${exponent}`));
const LARGEST_POWER = 60;
/** Up to this power of ten a double is exact. */
const EXACT_POWER = 22;
/** More than the error of a double made of some groups of digits and one power of ten. */
const FLOAT32_DOUBT = 2 ** -48;
/** More than the error of what `nearestDouble` finds missing, as a share of it. */
const DOUBLE_DOUBT = 2 ** -12;
/** Splits a double in two halves of 26 bits (Veltkamp). */
const SPLITTER = 2 ** 27 + 1;

/** Digits are gathered by nines, as small integers. */
export const DIGITS_OF_GROUP = 9;

/**
 * The float32 nearest to `mantissa * 10^scale`, or NaN where this can't tell. The mantissa may be off by some units in a
 * double's last place. The same as rounding the nearest double: where the two could differ it can't tell.
 */
export function nearestFloat32(mantissa: number, scale: number): number {
  if (scale < -LARGEST_POWER || scale > LARGEST_POWER) return NaN;
  const size = scale < 0 ? mantissa / POWERS[-scale]! : mantissa * POWERS[scale]!;
  const nearest = Math.fround(size * (1 - FLOAT32_DOUBT));
  return nearest === Math.fround(size * (1 + FLOAT32_DOUBT)) ? nearest : NaN;
}

/**
 * The double nearest to `(high * 10^lowDigits + low) * 10^scale`, `high` and `low` below 10^9, or NaN where this can't tell. Mantissa and power divide to a quotient; the product of
 * quotient and power is known to twice a double's bits (Dekker), and so what the quotient is short of.
 */
export function nearestDouble(high: number, low: number, lowDigits: number, scale: number): number {
  if (scale < -EXACT_POWER || scale > 0) return NaN;
  const power = POWERS[-scale]!;
  // Below 2^51, and so exact.
  const upper = high * POWERS[lowDigits]!;
  const quotient = (upper + low) / power;
  const quotientHigh = upperHalf(quotient);
  const quotientLow = quotient - quotientHigh;
  const powerHigh = upperHalf(power);
  const powerLow = power - powerHigh;
  const product = quotient * power;
  const productRest = quotientLow * powerLow -
    (product - quotientHigh * powerHigh - quotientLow * powerHigh - quotientHigh * powerLow);
  const missing = ((upper - product) + (low - productRest)) / power;
  const nearest = quotient + missing * (1 - DOUBLE_DOUBT);
  return nearest === quotient + missing * (1 + DOUBLE_DOUBT) ? nearest : NaN;
}

function upperHalf(value: number): number {
  const spread = SPLITTER * value;
  return spread - (spread - value);
}
