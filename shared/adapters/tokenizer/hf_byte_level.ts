/**
 * Decoding for byte-level vocabularies: every token is a string of bytes, so text is the UTF-8 of the joined bytes. It does
 * not encode, and knows nothing of other kinds of vocabulary.
 */

import type { IncrementalDecoder } from "../../ports/tokenizer.ts";
import type { HfAddedToken } from "./hf_files.ts";
import { sharedUint32, sharedUint8 } from "./hf_shared_arrays.ts";

/** The bytes of every token, one after the other: those of id `i` are `bytes[offsets[i]]` up to `bytes[offsets[i + 1]]`. */
export interface TokenBytes {
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  /** 1 where the id is an added token, whose text is never joined with the bytes of its neighbours. */
  readonly added: Uint8Array;
}

/**
 * The character that stands for each byte: printable Latin-1 stands for itself, the rest for U+0100 onwards in order
 * (GPT-2's table, which every byte-level vocabulary uses).
 */
export function byteCharacters(): string[] {
  const characters: string[] = [];
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    characters.push(String.fromCharCode(printable ? byte : next++));
  }
  return characters;
}

/** The bytes of all tokens. A token with a character that stands for no byte is its own UTF-8, as in Hugging Face's decoder. */
export function tokenBytes(
  tokens: readonly (string | undefined)[],
  addedTokens: readonly HfAddedToken[],
): TokenBytes {
  const byteOf = new Map(byteCharacters().map((character, byte) => [character.charCodeAt(0), byte]));
  const added = sharedUint8(tokens.length);
  for (const token of addedTokens) added[token.id] = 1;
  const encoder = new TextEncoder();
  const offsets = sharedUint32(tokens.length + 1);
  let bytes = new Uint8Array(tokens.length * 8);
  let size = 0;
  for (let id = 0; id < tokens.length; id++) {
    const token = tokens[id] ?? "";
    // A UTF-16 unit is at most three bytes.
    if (size + token.length * 3 > bytes.length) {
      const larger = new Uint8Array(bytes.length * 2 + token.length * 3);
      larger.set(bytes.subarray(0, size));
      bytes = larger;
    }
    let end = size;
    for (let index = 0; index < token.length && end >= 0; index++) {
      const byte = added[id] === 1 ? undefined : byteOf.get(token.charCodeAt(index));
      if (byte === undefined) end = -1;
      else bytes[end++] = byte;
    }
    if (end < 0) end = size + encoder.encodeInto(token, bytes.subarray(size)).written;
    size = end;
    offsets[id + 1] = size;
  }
  const exact = sharedUint8(size);
  exact.set(bytes.subarray(0, size));
  return { bytes: exact, offsets, added };
}

/** Decodes whole lists of ids and streams of ids. Ids are in range: who calls has checked it. */
export class ByteLevelDecoder {
  readonly #table: TokenBytes;
  /** Text of the tokens that are whole characters by themselves; null: not whole; undefined: not looked at yet. */
  readonly #texts: (string | null | undefined)[] = [];

  constructor(table: TokenBytes) {
    this.#table = table;
  }

  decode(ids: ArrayLike<number>, skip: ReadonlySet<number> | null): string {
    const { bytes, offsets, added } = this.#table;
    const decoder = newDecoder();
    let text = "";
    let buffer = new Uint8Array(Math.min(ids.length * 4 + 64, 1 << 16));
    let size = 0;
    for (let index = 0; index < ids.length; index++) {
      const id = ids[index] ?? 0;
      if (skip !== null && skip.has(id)) continue;
      const start = offsets[id] ?? 0;
      const end = offsets[id + 1] ?? start;
      const isAdded = added[id] === 1;
      if (size + (end - start) > buffer.length || isAdded) {
        text += decoder.decode(buffer.subarray(0, size), { stream: !isAdded });
        size = 0;
        if (end - start > buffer.length) buffer = new Uint8Array(end - start);
      }
      buffer.set(bytes.subarray(start, end), size);
      size += end - start;
    }
    return text + decoder.decode(buffer.subarray(0, size));
  }

  decoder(): IncrementalDecoder {
    const decoder = newDecoder();
    let pending = false;
    return {
      push: (id) => {
        const whole = this.#textOf(id);
        if (this.#table.added[id] === 1) {
          const rest = pending ? decoder.decode() : "";
          pending = false;
          return rest + whole;
        }
        if (!pending && whole !== null) return whole;
        const { bytes, offsets } = this.#table;
        // Decoders do not read shared memory.
        const piece = bytes.slice(offsets[id] ?? 0, offsets[id + 1] ?? 0);
        // An empty token leaves a pending character pending.
        if (piece.length === 0) return "";
        const text = decoder.decode(piece, { stream: true });
        pending = !endsWhole(piece);
        return text;
      },
      finish: () => {
        pending = false;
        return decoder.decode();
      },
    };
  }

  #textOf(id: number): string | null {
    const known = this.#texts[id];
    if (known !== undefined) return known;
    const { bytes, offsets } = this.#table;
    let text: string | null;
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
        bytes.slice(offsets[id] ?? 0, offsets[id + 1] ?? 0),
      );
    } catch {
      text = null;
    }
    this.#texts[id] = text;
    return text;
  }
}

function newDecoder(): TextDecoder {
  return new TextDecoder("utf-8", { ignoreBOM: true });
}

/**
 * Whether a stream decoder surely holds nothing back after this piece: it ends in ASCII, or in a lead byte with all its
 * continuation bytes. A false "no" costs a call, a false "yes" would lose a character.
 */
function endsWhole(piece: Uint8Array): boolean {
  for (let back = 1; back <= Math.min(4, piece.length); back++) {
    const byte = piece[piece.length - back] ?? 0;
    if (byte < 0x80) return true;
    if (byte >= 0xc0) return back >= (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2);
  }
  return false;
}
