/** Base64 that comes in pieces, as 32-bit words. It does not know what the words are. */

const PADDING = 61;
/** Per byte its six bits, or -1 where it is none of the alphabet. */
const SIX_BITS = new Int8Array(256).fill(-1);
for (const [value, character] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  SIX_BITS[character.charCodeAt(0)] = value;
}
const WORD_BYTES = 4;

/** One text. Push its characters in any pieces; null and false say that they are no base64 of whole words. */
export class Base64Words {
  /** Characters of a four that is not whole yet, and their bits. */
  #characters = 0;
  #bits = 0;
  #padding = 0;
  /** Decoded bytes, and those at their end that are of a word that is not whole yet. */
  #bytes = new Uint8Array(0);
  #rest = 0;
  #carried = 0;

  /** The words that are whole now, little-endian as they came; they are there until the next push. */
  push(text: Uint8Array): DataView | null {
    const bytes = this.#room(text.length);
    let end = this.#carried;
    let at = 0;
    while (at < text.length) {
      if (this.#characters === 0) {
        // Most of the text comes by here.
        for (; at + 4 <= text.length; at += 4) {
          const first = SIX_BITS[text[at]!]!;
          const second = SIX_BITS[text[at + 1]!]!;
          const third = SIX_BITS[text[at + 2]!]!;
          const fourth = SIX_BITS[text[at + 3]!]!;
          if ((first | second | third | fourth) < 0 || this.#padding > 0) break;
          bytes[end] = (first << 2) | (second >> 4);
          bytes[end + 1] = (second << 4) | (third >> 2);
          bytes[end + 2] = (third << 6) | fourth;
          end += 3;
        }
        if (at === text.length) break;
      }
      if (!this.#take(text[at++]!)) return null;
      if (this.#characters < 4) continue;
      const count = 3 - this.#padding;
      for (let k = 0; k < count; k++) bytes[end++] = this.#bits >> (16 - 8 * k);
      this.#characters = this.#bits = 0;
    }
    const whole = end - end % WORD_BYTES;
    this.#carried = end - whole;
    this.#bytes = bytes;
    this.#rest = whole;
    return new DataView(bytes.buffer, 0, whole);
  }

  /** Whether the text may end here. */
  isWhole(): boolean {
    return this.#characters === 0 && this.#carried === 0;
  }

  #take(character: number): boolean {
    const value = SIX_BITS[character]!;
    if (value >= 0) {
      if (this.#padding > 0) return false;
      this.#bits = (this.#bits << 6) | value;
    } else {
      // Padding stands in the last one or two places of the last four.
      if (character !== PADDING || this.#characters < 2) return false;
      this.#bits <<= 6;
      this.#padding++;
    }
    this.#characters++;
    return true;
  }

  /** Room for what is carried and for what so many characters give. */
  #room(characters: number): Uint8Array<ArrayBuffer> {
    const length = this.#carried + Math.ceil((this.#characters + characters) / 4) * 3;
    const bytes = this.#bytes.length < length ? new Uint8Array(length) : this.#bytes;
    bytes.set(this.#bytes.subarray(this.#rest, this.#rest + this.#carried));
    return bytes;
  }
}
