/** The extras of a turn, from the wish of its task to what its record says of them. It decides nothing about tokens. */

import { encodeTopPIds, type Experts, expertsWidth, type TopPIds } from "../../core/extra_arrays.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { TurnRecord } from "../../core/turn.ts";
import {
  expertsFrom,
  type ExtraName,
  isMissing,
  type KeptBlob,
  type KeptExperts,
  type KeptTopPIds,
  type MissingExtra,
  type TurnExtras,
} from "../../core/turn_extras.ts";
import type { EngineExtras, ExtrasAsked } from "../../ports/engine.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ExtrasProbe } from "./extras_probe.ts";
import type { KeptBlobs } from "./kept_blobs.ts";
import type { Model } from "../model_catalog.ts";

/** What is needed. */
export interface ExtrasCaptureOptions {
  readonly probe: ExtrasProbe;
  readonly blobs: KeptBlobs;
  readonly logger: Logger;
}

/** What one turn is to be asked for. */
export interface ExtrasPlan {
  readonly names: readonly ExtraName[];
  readonly model: Model;
  readonly asked: ExtrasAsked;
  /** Values of a row of experts, as the engine was seen to say them; null where that is not known. */
  readonly expertsWidth: number | null;
}

const NOT_SAMPLED: MissingExtra = { missing: "not_sampled" };

/** Asks for extras, checks them, keeps them. */
export class ExtrasCapture {
  readonly #options: ExtrasCaptureOptions;

  constructor(options: ExtrasCaptureOptions) {
    this.#options = options;
  }

  /** The plan for a turn that extends `parent`; null where the task wants nothing beside tokens. */
  async plan(
    task: TaskRecord,
    turn: {
      readonly model: Model;
      readonly turns: readonly { readonly record: TurnRecord }[];
      readonly parent: number | null;
    },
  ): Promise<ExtrasPlan | null> {
    const names = task.settings.captureExtras ?? [];
    if (names.length === 0) return null;
    const wanted = new Set<ExtraName>(names);
    return {
      names,
      model: turn.model,
      asked: {
        ...(wanted.has("routed_experts") ? { expertsFrom: expertsFrom(turn.turns, turn.parent) } : {}),
        ...(wanted.has("top_p_ids") ? { topPIds: true } : {}),
        ...(wanted.has("spec_info") ? { specInfo: true } : {}),
      },
      expertsWidth: wanted.has("routed_experts") ? await this.#options.probe.expertsWidth(turn.model) : null,
    };
  }

  /**
   * What the turn's record says of its extras; their bytes are kept before it is written. What can't be kept is missing:
   * the tokens stand without it. `said` is undefined where the policy did not sample the turn.
   */
  async keep(task: TaskRecord, plan: ExtrasPlan, said: EngineExtras | undefined): Promise<TurnExtras> {
    const { experts = NOT_SAMPLED, topPIds = NOT_SAMPLED, specInfo = NOT_SAMPLED } = said ?? {};
    const wanted = new Set<ExtraName>(plan.names);
    // At once: the agent waits, and a place that does not answer is waited for a while.
    const [keptExperts, keptIds] = await Promise.all([
      wanted.has("routed_experts") ? this.#keepExperts(task, plan, experts) : null,
      wanted.has("top_p_ids") ? this.#keepTopPIds(task, topPIds) : null,
    ]);
    return {
      ...(keptExperts === null ? {} : { routed_experts: keptExperts }),
      ...(keptIds === null ? {} : { top_p_ids: keptIds }),
      ...(wanted.has("spec_info") ? { spec_info: specInfo } : {}),
    };
  }

  async #keepExperts(
    task: TaskRecord,
    plan: ExtrasPlan,
    experts: Experts | MissingExtra,
  ): Promise<KeptExperts | MissingExtra> {
    if (isMissing(experts)) return experts;
    const { start, rows, bytes } = experts;
    const width = expertsWidth(experts);
    // A reply of too few rows may still divide: only a known width tells.
    if (plan.expertsWidth === null) return { missing: "unverified" };
    if (rows > 0 && width !== plan.expertsWidth) {
      // Another model may be served by now.
      this.#options.probe.forget(plan.model);
      return { missing: "inconsistent" };
    }
    const blob = await this.#put(task, bytes);
    return isMissing(blob) ? blob : { blob, start, rows, width };
  }

  async #keepTopPIds(task: TaskRecord, topPIds: TopPIds | MissingExtra): Promise<KeptTopPIds | MissingExtra> {
    if (isMissing(topPIds)) return topPIds;
    const blob = await this.#put(task, encodeTopPIds(topPIds));
    return isMissing(blob) ? blob : { blob, ids: topPIds.ids.length };
  }

  async #put(task: TaskRecord, bytes: Uint8Array): Promise<KeptBlob | MissingExtra> {
    try {
      return await this.#options.blobs.put(task, bytes);
    } catch (cause) {
      this.#options.logger.warn("An extra of a turn could not be kept", {
        task_id: task.taskId,
        bytes: bytes.byteLength,
        cause: String(cause),
      });
      return { missing: "not_kept" };
    }
  }
}
