/**
 * What SGLang says beside tokens and logprobs: how it is asked, and what of its replies is taken. It is checked against the
 * tokens, and what does not fit them is missing; the tokens stand all the same.
 */

import type { Experts, TopPIds } from "../../core/extra_arrays.ts";
import type { MissingExtra, SpecInfo } from "../../core/turn_extras.ts";
import type { EngineExtras, ExtrasAsked } from "../../ports/engine.ts";

/** Fields that go into the body of a request, and into the custom parameters of its sampling beside the caller's own. */
export function extraFields(
  asked: ExtrasAsked,
): { readonly body: Record<string, unknown>; readonly customParams: Record<string, unknown> } {
  const { expertsFrom, topPIds } = asked;
  return {
    body: expertsFrom === undefined ? {} : { return_routed_experts: true, routed_experts_start_len: expertsFrom },
    // slime's engine knows it; another leaves it alone.
    customParams: topPIds === undefined ? {} : { return_top_p_token_ids: true },
  };
}

/** The ids behind top-p of one frame, not yet decoded. */
interface TopPPiece {
  readonly ids: unknown;
  readonly offsets: unknown;
  /** Tokens that are new with the frame. */
  readonly fresh: number;
}

/** Gathers the extras of one request from its frames. */
export class ExtrasReader {
  readonly #asked: ExtrasAsked;
  readonly #expected: { readonly promptTokens: number; readonly vocabSize: number };
  #pieces: TopPPiece[] = [];
  #lastMeta: Readonly<Record<string, unknown>> = {};

  constructor(asked: ExtrasAsked, expected: { readonly promptTokens: number; readonly vocabSize: number }) {
    this.#asked = asked;
    this.#expected = expected;
  }

  /** A frame: how many of its tokens are new, and how many there are with them. */
  note(meta: Readonly<Record<string, unknown>>, { fresh, sampled }: { fresh: number; sampled: number }): void {
    this.#lastMeta = meta;
    if (this.#asked.topPIds === undefined) return;
    const piece = { ids: meta.top_p_token_ids, offsets: meta.top_p_token_offsets, fresh };
    const tokens = int32Count(piece.offsets) - 1;
    // A frame may hold all tokens so far or its own alone; what is held twice is kept once.
    if (tokens === sampled) this.#pieces = [{ ...piece, fresh: sampled }];
    else if (fresh > 0) this.#pieces.push(piece);
  }

  /** Everything that was asked for, checked against the tokens that were sampled. */
  end(sampled: readonly number[]): EngineExtras {
    const { expertsFrom, topPIds, specInfo } = this.#asked;
    return {
      ...(expertsFrom === undefined ? {} : { experts: this.#experts(expertsFrom, sampled.length) }),
      ...(topPIds === undefined ? {} : { topPIds: this.#topPIds(sampled) }),
      ...(specInfo === undefined ? {} : { specInfo: this.#specInfo(sampled.length) }),
    };
  }

  #experts(start: number, sampled: number): Experts | MissingExtra {
    const sent = this.#lastMeta.routed_experts;
    if (sent === undefined || sent === null) return { missing: "dropped" };
    const bytes = typeof sent === "string" ? fromBase64(sent) : null;
    const rows = this.#expected.promptTokens + sampled - 1 - start;
    const fits = bytes !== null && rows >= 0 &&
      (rows === 0 ? bytes.byteLength === 0 : bytes.byteLength > 0 && bytes.byteLength % (4 * rows) === 0);
    return fits ? { start, rows, bytes } : { missing: "inconsistent" };
  }

  #topPIds(sampled: readonly number[]): TopPIds | MissingExtra {
    const offsets = new Int32Array(sampled.length + 1);
    const parts: Int32Array[] = [];
    let [token, count] = [0, 0];
    for (const piece of this.#pieces) {
      const own = int32Of(piece.ids);
      const ends = int32Of(piece.offsets);
      if (own === null || ends === null) return { missing: isAbsent(piece) ? "dropped" : "inconsistent" };
      if (ends.length !== piece.fresh + 1 || ends[0] !== 0 || ends.at(-1) !== own.length) {
        return { missing: "inconsistent" };
      }
      for (let t = 0; t < piece.fresh; t++) {
        const ids = own.subarray(ends[t], ends[t + 1]);
        if (ends[t + 1]! < ends[t]! || !ids.includes(sampled[token]!)) return { missing: "inconsistent" };
        offsets[++token] = count + ends[t + 1]!;
      }
      parts.push(own);
      count += own.length;
    }
    if (token !== sampled.length) return { missing: "dropped" };
    const ids = new Int32Array(count);
    let at = 0;
    for (const part of parts) {
      ids.set(part, at);
      at += part.length;
    }
    const { vocabSize } = this.#expected;
    return ids.every((id) => id >= 0 && id < vocabSize) ? { offsets, ids } : { missing: "inconsistent" };
  }

  #specInfo(sampled: number): SpecInfo | MissingExtra {
    const { spec_verify_ct: verifications, spec_accept_token_num: accepted, spec_draft_token_num: drafts } =
      this.#lastMeta;
    if (isCount(verifications) && isCount(accepted) && isCount(drafts)) {
      return { verifications, acceptedTokens: accepted, draftTokens: drafts };
    }
    // The first token comes without a round, and SGLang leaves counters of nothing out.
    if (sampled <= 1) return { verifications: 0, acceptedTokens: 0, draftTokens: 0 };
    return { missing: "dropped" };
  }
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0;
}

function isAbsent({ ids, offsets }: TopPPiece): boolean {
  return (ids ?? null) === null || (offsets ?? null) === null;
}

/** Values in an array, without decoding it. */
function int32Count(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  if (typeof value !== "string") return -1;
  const padding = value.endsWith("==") ? 2 : value.endsWith("=") ? 1 : 0;
  return (value.length / 4 * 3 - padding) / 4;
}

/** Little-endian int32 in base64, or a list of numbers; null for anything else. */
function int32Of(value: unknown): Int32Array | null {
  if (Array.isArray(value)) {
    return value.every((entry) => Number.isInteger(entry) && entry === (entry | 0)) ? Int32Array.from(value) : null;
  }
  const bytes = typeof value === "string" ? fromBase64(value) : null;
  return bytes === null || bytes.byteLength % 4 !== 0 ? null : new Int32Array(bytes.buffer);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.fromBase64(text);
  } catch (cause) {
    if (cause instanceof SyntaxError) return null;
    throw cause;
  }
}
