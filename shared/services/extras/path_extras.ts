/** The extras of a path, put together from those of its turns. It captures nothing, and makes nothing up. */

import {
  decodeTopPIds,
  type Experts,
  expertsWidth,
  joinExperts,
  joinTopPIds,
  type TopPIds,
} from "../../core/extra_arrays.ts";
import type { PackedPath, TurnSpan } from "../../core/packed_path.ts";
import type { Tensor } from "../../core/safetensors.ts";
import type { Turn, TurnRecord } from "../../core/turn.ts";
import type { TaskRecord } from "../../core/task.ts";
import { type ExtraName, isMissing, type MissingReason, type SpecInfo } from "../../core/turn_extras.ts";
import type { KeptBlobs } from "./kept_blobs.ts";

/** Turns whose bytes are read at once. */
const READ_AT_ONCE = 4;

/** What a task's turns hold of the extras that an export is to carry. */
export interface FoundExtras {
  readonly names: readonly ExtraName[];
  readonly experts: ReadonlyMap<number, Experts>;
  readonly topPIds: ReadonlyMap<number, TopPIds>;
}

/** Reads the extras of these turns; `names`: only those, of what the task captures. Bytes that are not there are an error. */
export async function findExtras(
  blobs: KeptBlobs,
  task: TaskRecord,
  wanted: { readonly turns: readonly Turn[]; readonly names: readonly ExtraName[] | undefined },
): Promise<FoundExtras> {
  const names = (task.settings.captureExtras ?? []).filter((name) => wanted.names?.includes(name) ?? true);
  const experts = new Map<number, Experts>();
  const topPIds = new Map<number, TopPIds>();
  async function read({ turn, extras, completionTokens: tokens }: TurnRecord): Promise<void> {
    const { routed_experts: kept, top_p_ids: keptIds } = extras ?? {};
    if (names.includes("routed_experts") && kept !== undefined && !isMissing(kept)) {
      experts.set(turn, { start: kept.start, rows: kept.rows, bytes: await blobs.get(task, kept.blob) });
    }
    if (names.includes("top_p_ids") && keptIds !== undefined && !isMissing(keptIds)) {
      topPIds.set(turn, decodeTopPIds(await blobs.get(task, keptIds.blob), { tokens, ids: keptIds.ids }));
    }
  }
  for (let first = 0; first < wanted.turns.length; first += READ_AT_ONCE) {
    await Promise.all(wanted.turns.slice(first, first + READ_AT_ONCE).map(({ record }) => read(record)));
  }
  return { names, experts, topPIds };
}

/** Why an extra of a path is missing: the first of its turns that lacks it. */
export interface MissingOfPath {
  readonly extra: ExtraName;
  readonly turn: number;
  readonly reason: MissingReason;
}

/** The counters of speculative decoding, as SGLang and trainers name them. */
export interface SpecCounts {
  readonly spec_accept_token_num: number;
  readonly spec_draft_token_num: number;
  readonly spec_verify_ct: number;
  readonly completion_token_num: number;
}

/** How much of the prompts was cached. */
export interface PrefixCounts {
  readonly cached_tokens: number;
  readonly total_prompt_tokens: number;
}

/** What is known of a path's extras. What was not asked for is absent, what is missing is null. */
export class PathExtras {
  readonly names: readonly ExtraName[];
  readonly missing: MissingOfPath[] = [];
  /** Rows of expert ids for all positions but the last, from the prompt on. */
  readonly routedExperts: Experts | null;
  /** The ids behind each response position; none where nothing was sampled. */
  readonly topPIds: TopPIds | null;
  readonly specInfo: SpecCounts | null;
  readonly prefixCacheInfo: PrefixCounts | null;

  constructor(path: PackedPath, found: FoundExtras) {
    this.names = found.names;
    this.routedExperts = this.#of("routed_experts", () => this.#experts(path, found));
    this.topPIds = this.#of("top_p_ids", () => this.#topPIds(path, found));
    this.specInfo = this.#of("spec_info", () => this.#specInfo(path));
    this.prefixCacheInfo = this.#of("prefix_cache_info", () => this.#prefixInfo(path));
  }

  /** The extras by name, for JSON: arrays of experts as base64, the others as lists. */
  toJSON(): Record<string, unknown> {
    const { routedExperts: experts, topPIds } = this;
    const shapes: Record<ExtraName, unknown> = {
      routed_experts: experts && { dtype: "int32", shape: shapeOf(experts), base64: base64Of(experts) },
      top_p_ids: topPIds && { ids: Array.from(topPIds.ids), offsets: Array.from(topPIds.offsets) },
      spec_info: this.specInfo,
      prefix_cache_info: this.prefixCacheInfo,
    };
    return Object.fromEntries(this.names.map((name) => [name, shapes[name]]));
  }

  /** The arrays as tensors, their names after `prefix`. */
  tensors(prefix: string): Tensor[] {
    const { routedExperts: experts, topPIds } = this;
    const tensors: Tensor[] = [];
    if (experts !== null) {
      const data = new Int32Array(Uint8Array.from(experts.bytes).buffer);
      tensors.push({ name: `${prefix}routed_experts`, shape: shapeOf(experts), data });
    }
    if (topPIds !== null) {
      for (const [name, data] of [["top_p_ids", topPIds.ids], ["top_p_offsets", topPIds.offsets]] as const) {
        tensors.push({ name: prefix + name, shape: [data.length], data });
      }
    }
    return tensors;
  }

  /** What is no array. */
  rest(): Record<string, unknown> {
    const { routed_experts: _experts, top_p_ids: _ids, ...rest } = this.toJSON();
    return rest;
  }

  #of<Value>(name: ExtraName, make: () => Value | null): Value | null {
    return this.names.includes(name) ? make() : null;
  }

  #lacks(extra: ExtraName, { turn }: TurnSpan, reason: MissingReason): null {
    this.missing.push({ extra, turn: turn.record.turn, reason });
    return null;
  }

  /** A turn's rows begin where its ancestors' end; what the policy did not sample, the next turn covers. */
  #experts(path: PackedPath, { experts }: FoundExtras): Experts | null {
    const parts: Experts[] = [];
    for (const span of path.spans) {
      const { record } = span.turn;
      const own = experts.get(record.turn);
      if (own !== undefined) parts.push(own);
      else if (record.actor === "policy") {
        return this.#lacks("routed_experts", span, reasonOf(record, "routed_experts"));
      }
    }
    const last = path.spans.at(-1)!;
    const joined = joinExperts(parts);
    if (joined === null) {
      return this.#lacks("routed_experts", last, parts.length === 0 ? "not_sampled" : "inconsistent");
    }
    if (joined.start === 0 && joined.rows === path.prompt.length + path.response.length - 1) return joined;
    return this.#lacks("routed_experts", last, last.turn.record.actor === "teacher" ? "not_sampled" : "inconsistent");
  }

  #topPIds(path: PackedPath, { topPIds }: FoundExtras): TopPIds | null {
    const parts: TopPIds[] = [];
    let at = 0;
    for (const span of path.spans) {
      const { record } = span.turn;
      const own = topPIds.get(record.turn);
      if (own === undefined && record.actor === "policy") {
        return this.#lacks("top_p_ids", span, reasonOf(record, "top_p_ids"));
      }
      parts.push(noIds(span.start - at), own ?? noIds(span.end - span.start));
      at = span.end;
    }
    return joinTopPIds(parts);
  }

  #specInfo(path: PackedPath): SpecCounts | null {
    const all: SpecInfo[] = [];
    for (const span of path.spans) {
      const { record } = span.turn;
      const own = record.extras?.spec_info;
      if (own !== undefined && !isMissing(own)) all.push(own);
      else if (record.actor === "policy") return this.#lacks("spec_info", span, reasonOf(record, "spec_info"));
    }
    return {
      spec_accept_token_num: all.reduce((sum, one) => sum + one.acceptedTokens, 0),
      spec_draft_token_num: all.reduce((sum, one) => sum + one.draftTokens, 0),
      spec_verify_ct: all.reduce((sum, one) => sum + one.verifications, 0),
      completion_token_num: path.sampledMask.reduce((sum, bit) => sum + bit, 0),
    };
  }

  #prefixInfo(path: PackedPath): PrefixCounts | null {
    const asked = path.spans.filter(({ turn }) => turn.record.actor === "policy");
    const untold = asked.find(({ turn }) => turn.record.cachedTokens === null);
    if (untold !== undefined) return this.#lacks("prefix_cache_info", untold, "dropped");
    return {
      cached_tokens: asked.reduce((sum, { turn }) => sum + (turn.record.cachedTokens ?? 0), 0),
      total_prompt_tokens: asked.reduce((sum, { turn }) => sum + turn.record.promptTokens, 0),
    };
  }
}

/** A path's extras; null where the export carries none. */
export function pathExtras(path: PackedPath, found: FoundExtras): PathExtras | null {
  return found.names.length === 0 ? null : new PathExtras(path, found);
}

/** Fields for a JSON export; none where there are no extras. */
export function extraFields(extras: PathExtras | null): Record<string, unknown> {
  return extras === null ? {} : { extras, extras_missing: extras.missing };
}

/** What a reader of these paths should know. */
export function extraNotes(extras: readonly (PathExtras | null)[]): string[] {
  return extras.some((one) => one !== null && one.missing.length > 0) ? ["extras_missing"] : [];
}

/** Experts as SGLang sends them. */
export function base64Of({ bytes }: Experts): string {
  return bytes.toBase64();
}

function shapeOf(experts: Experts): number[] {
  return [experts.rows, expertsWidth(experts)];
}

function noIds(tokens: number): TopPIds {
  return { offsets: new Int32Array(tokens + 1), ids: new Int32Array() };
}

/** Why a turn that the policy sampled does not hold an extra. */
function reasonOf({ extras }: TurnRecord, name: "routed_experts" | "top_p_ids" | "spec_info"): MissingReason {
  const own = extras?.[name];
  return own !== undefined && isMissing(own) ? own.missing : "dropped";
}
