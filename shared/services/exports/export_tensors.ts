/** An export's arrays as tensors, the rest of it as JSON. It knows names and types, not where the numbers come from. */

import type { Tensor, TensorData } from "../../core/safetensors.ts";
import { ScoreColumn } from "../teacher/kept_scores.ts";
import { PathExtras } from "../extras/path_extras.ts";

/** Arrays that become tensors. Ids are int32: no vocabulary has more. */
const TYPES: Readonly<Record<string, (values: readonly number[]) => TensorData>> = {
  prompt_token_ids: (values) => Int32Array.from(values),
  completion_token_ids: (values) => Int32Array.from(values),
  tokens: (values) => Int32Array.from(values),
  logprobs: (values) =>
    values.every((value) => Math.fround(value) === value) ? Float32Array.from(values) : Float64Array.from(values),
  loss_mask: (values) => Uint8Array.from(values),
  ce_mask: (values) => Uint8Array.from(values),
  sampled_mask: (values) => Uint8Array.from(values),
};

/** Takes an export apart: a region's arrays under their names, those of rows under `row.N.` and their names. */
export function exportTensors(body: Record<string, unknown>): { tensors: Tensor[]; rest: Record<string, unknown> } {
  const tensors: Tensor[] = [];
  const { result, rows, ...head } = body;
  const rest: Record<string, unknown> = { ...head };
  if (result !== undefined) rest.result = isObject(result) ? take(result, "", tensors) : result;
  if (Array.isArray(rows)) rest.rows = rows.map((row, index) => take(row, `row.${index}.`, tensors));
  return { tensors, rest };
}

/** What is left of an object whose arrays went into `tensors`. */
function take(object: Record<string, unknown>, prefix: string, tensors: Tensor[]): Record<string, unknown> {
  const rest: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(object)) {
    const make = TYPES[name];
    if (value instanceof ScoreColumn) {
      tensors.push(value.tensor(prefix + name));
      if (name === "teacher_log_probs") tensors.push(value.mask(`${prefix}scored_mask`));
    } else if (value instanceof PathExtras) {
      tensors.push(...value.tensors(prefix));
      rest[name] = value.rest();
    } else if (make !== undefined && isNumbers(value)) {
      tensors.push({ name: prefix + name, shape: [value.length], data: make(value) });
    } else {
      rest[name] = value;
    }
  }
  return rest;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "number");
}
