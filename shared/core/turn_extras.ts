/**
 * What a task may capture of an engine beside tokens and logprobs: names, and what a turn's record holds of them. It knows
 * neither engines nor exports.
 */

/** Every extra, by the name under which it is asked for. */
export const EXTRA_NAMES = ["routed_experts", "top_p_ids", "spec_info", "prefix_cache_info"] as const;

/** A name of {@linkcode EXTRA_NAMES}. */
export type ExtraName = typeof EXTRA_NAMES[number];

/** Bytes kept beside the record. */
export interface KeptBlob {
  /** In the task store, or in the place outside of it. */
  readonly place: "store" | "outside";
  /** What that place calls them. */
  readonly name: string;
  /** How many. */
  readonly bytes: number;
}

/**
 * Why an extra that was asked for is not there. `dropped`: the engine's answer did not hold it; `inconsistent`: what it
 * held does not fit the tokens; `unverified`: what fits could not be learned; `not_kept`: it could not be written; `interrupted`: a part of the generation went without it;
 * `not_sampled`: the policy did not sample the turn.
 */
export type MissingReason = "dropped" | "inconsistent" | "unverified" | "not_kept" | "interrupted" | "not_sampled";

/** An extra that was asked for and is not there. It is never made up. */
export interface MissingExtra {
  /** Why. */
  readonly missing: MissingReason;
}

/** Which experts the positions of a turn were routed to: int32, `rows` rows of `width`, little-endian as the engine sent them. */
export interface KeptExperts {
  /** The rows. */
  readonly blob: KeptBlob;
  /** The position of the first row, in the turn's whole prompt. */
  readonly start: number;
  /** Rows: one a position, up to the one before the last sampled token. */
  readonly rows: number;
  /** Values of a row: layers by experts chosen. */
  readonly width: number;
}

/** Which ids sampling chose from, for each sampled token T: int32, T + 1 offsets, then the ids. */
export interface KeptTopPIds {
  /** Offsets, then ids. */
  readonly blob: KeptBlob;
  /** Number of ids. */
  readonly ids: number;
}

/** What speculative decoding did. */
export interface SpecInfo {
  /** Drafted tokens that were accepted. */
  readonly acceptedTokens: number;
  /** Drafted tokens. */
  readonly draftTokens: number;
  /** Rounds of verification. */
  readonly verifications: number;
}

/** The extras that were asked for in a turn. What the record says anyhow (cached tokens) is not said again. */
export interface TurnExtras {
  /** Expert ids. */
  readonly routed_experts?: KeptExperts | MissingExtra;
  /** Ids that sampling chose from. */
  readonly top_p_ids?: KeptTopPIds | MissingExtra;
  /** Speculative decoding. */
  readonly spec_info?: SpecInfo | MissingExtra;
}

/** What of a turn's record tells how far its experts reach. */
export interface ExpertsReach {
  /** Who sampled it. */
  readonly actor: "policy" | "teacher";
  /** The turn whose series it extends. */
  readonly parent: number | null;
  /** Tokens of the whole prompt. */
  readonly promptTokens: number;
  /** Sampled tokens. */
  readonly completionTokens: number;
}

/** Whether an extra is missing. */
export function isMissing<Kept extends object>(extra: Kept | MissingExtra): extra is MissingExtra {
  return "missing" in extra;
}

/**
 * The first position whose experts a new turn must ask for: its ancestors hold those of their own series but the last
 * token's, which nothing was computed from. What the policy did not sample (a teacher's turn) holds none, and is asked for.
 */
export function expertsFrom(turns: readonly { readonly record: ExpertsReach }[], parent: number | null): number {
  for (let at = parent; at !== null;) {
    const { record } = turns[at]!;
    if (record.actor === "policy") return record.promptTokens + record.completionTokens - 1;
    at = record.parent;
  }
  return 0;
}
