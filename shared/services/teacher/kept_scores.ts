/** The scores of a task that an export is to carry, along a path. It scores nothing. */

import type { PackedPath } from "../../core/packed_path.ts";
import type { Tensor } from "../../core/safetensors.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { TurnScores } from "../../core/turn_scores.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import { tailMasses } from "./tail_masses.ts";

/** One teacher's scores of a task. */
export interface KeptScores {
  readonly teacher: string;
  readonly byTurn: ReadonlyMap<number, TurnScores>;
}

/** What an export finds: scores or none, and what its reader should know. */
export interface FoundScores {
  readonly kept: KeptScores | null;
  readonly notes: readonly string[];
}

/** The scores by `teacher`; where it has none, those of the only other one. Of several others none is chosen. */
export async function findScores(store: TaskStore, task: TaskRecord, teacher: string | null): Promise<FoundScores> {
  const teachers = await store.listTeachers(task);
  const chosen = teacher !== null && teachers.includes(teacher) ? teacher : teachers.length === 1 ? teachers[0]! : null;
  if (chosen === null) return { kept: null, notes: teachers.length === 0 ? [] : ["scored_by_several_teachers"] };
  const scores = await store.readScores(task, chosen);
  return { kept: { teacher: chosen, byTurn: new Map(scores.map((one) => [one.turn, one])) }, notes: [] };
}

/** A column of R rows, of which some are scored. As JSON the others are null. */
export class ScoreColumn {
  /** R rows of `width` values; 0 where nothing is scored. */
  readonly data: Float64Array | Float32Array | Int32Array;
  readonly #width: number | null;
  readonly #scored: Uint8Array;

  /** `width` null: a row is a single value. */
  constructor(
    data: Float64Array | Float32Array | Int32Array,
    options: { readonly width: number | null; readonly scored: Uint8Array },
  ) {
    this.data = data;
    this.#width = options.width;
    this.#scored = options.scored;
  }

  /** The rows, null where nothing is scored. */
  toJSON(): unknown[] {
    return Array.from(this.#scored, (bit, row) => bit === 0 ? null : this.#row(row));
  }

  /** The rows, zeros where nothing is scored. */
  filled(): unknown[] {
    return Array.from(this.#scored, (_, row) => this.#row(row));
  }

  /** The column under a name, in the types that trainers take. */
  tensor(name: string): Tensor {
    const rows = this.#scored.length;
    return {
      name,
      shape: this.#width === null ? [rows] : [rows, this.#width],
      data: this.data instanceof Float64Array ? Float32Array.from(this.data) : this.data,
    };
  }

  /** 1 where a row is scored. */
  mask(name: string): Tensor {
    return { name, shape: [this.#scored.length], data: this.#scored };
  }

  #row(row: number): number | number[] {
    const width = this.#width;
    return width === null ? this.data[row]! : Array.from(this.data.subarray(row * width, (row + 1) * width));
  }
}

/** The fields that an export carries of scores. */
export interface PathScores {
  readonly teacher: string;
  readonly teacher_log_probs: ScoreColumn;
  readonly teacher_topk_indices: ScoreColumn;
  readonly teacher_topk_logprobs: ScoreColumn;
  readonly tail_mass: ScoreColumn;
}

/**
 * The scores of a path's response; null unless every token that `mask` wants is scored, with one K. A path that wants
 * nothing has none.
 */
export function pathScores(path: PackedPath, kept: KeptScores | null, mask: Uint8Array): PathScores | null {
  if (kept === null) return null;
  const wanted = path.spans.filter(({ start, end }) => start < end && mask[start] === 1);
  const topK = kept.byTurn.get(wanted[0]?.turn.record.turn ?? -1)?.topK;
  if (topK === undefined) return null;
  const length = path.response.length;
  const scored = new Uint8Array(length);
  const logprobs = new Float64Array(length);
  const indices = new Int32Array(length * topK);
  const topLogprobs = new Float32Array(length * topK);
  for (const { turn, start, end } of wanted) {
    const scores = kept.byTurn.get(turn.record.turn);
    if (scores === undefined || scores.topK !== topK || scores.logprobs.length !== end - start) return null;
    scored.fill(1, start, end);
    logprobs.set(scores.logprobs, start);
    indices.set(scores.topkIndices, start * topK);
    topLogprobs.set(scores.topkLogprobs, start * topK);
  }
  const column = (data: Float64Array | Float32Array | Int32Array, width: number | null) =>
    new ScoreColumn(data, { width, scored });
  const masses = tailMasses(topLogprobs, { rows: length, topK }).map((mass, row) => scored[row] === 1 ? mass : 0);
  return {
    teacher: kept.teacher,
    teacher_log_probs: column(logprobs, null),
    teacher_topk_indices: column(indices, topK),
    teacher_topk_logprobs: column(topLogprobs, topK),
    tail_mass: column(masses, null),
  };
}

/** Fields for a JSON export; none where there are no scores. */
export function scoreFields(scores: PathScores | null): Record<string, unknown> {
  return scores === null ? {} : { ...scores };
}
