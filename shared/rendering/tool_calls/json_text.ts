/** JSON text made compact without building its value, so that numbers keep their digits and objects their order. */

/** Valid JSON text without the white space between its tokens. */
export function compactJson(json: string): string {
  const parts: string[] = [];
  let from = 0;
  let index = 0;
  while (index < json.length) {
    const character = json.charAt(index);
    if (character === '"') {
      index = stringEnd(json, index);
    } else if (character === " " || character === "\n" || character === "\t" || character === "\r") {
      if (index > from) parts.push(json.slice(from, index));
      index++;
      from = index;
    } else {
      index++;
    }
  }
  if (index > from) parts.push(json.slice(from, index));
  return parts.join("");
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** Largest exponent that is written out as digits; beyond it a number is no integer here. */
const LARGEST_EXPONENT = 400;

/** Whether a text is a JSON number. */
export function isJsonNumber(text: string): boolean {
  return NUMBER.test(text);
}

/** The digits of a JSON number that is an integer (`3.0`, `1e3`), all of them; null if it is none. */
export function integerDigits(text: string): string | null {
  const match = NUMBER.exec(text);
  if (match === null) return null;
  const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match;
  const exponent = Number(exponentText);
  const digits = whole + fraction;
  if (/^0*$/.test(digits)) return "0";
  if (Math.abs(exponent) > LARGEST_EXPONENT) return null;
  const point = whole.length + exponent;
  if (!/^0*$/.test(digits.slice(Math.max(0, point))) || point <= 0) return null;
  return sign + (digits.slice(0, point).padEnd(point, "0").replace(/^0+(?=[0-9])/, ""));
}

function stringEnd(json: string, quote: number): number {
  let end = json.indexOf('"', quote + 1);
  while (end >= 0) {
    let slashes = 0;
    while (json.charCodeAt(end - 1 - slashes) === 92) slashes++;
    if (slashes % 2 === 0) return end + 1;
    end = json.indexOf('"', end + 1);
  }
  return json.length;
}
