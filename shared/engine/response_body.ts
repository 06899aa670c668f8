/**
 * The JSON of one answer or frame of `/generate`: which fields, cumulative or delta, and what faults make of them.
 * It does not send anything.
 */

import type { EngineRequest } from "./engine_request.ts";
import { flatTopLogprobs } from "./flat_top_logprobs.ts";
import type { LogprobEntry, LogprobRows } from "./generation.ts";
import { routedExperts } from "./routed_experts.ts";
import { speculationFields } from "./speculation.ts";

/** Which output positions a frame covers: ids `from` (inclusive) to `to` (exclusive) of those sampled so far. */
export interface FrameSpan {
  readonly from: number;
  readonly to: number;
  /** Text shown by the frames before, in UTF-16 units. */
  readonly textFrom: number;
  /** Whether this frame carries the input logprobs. */
  readonly withInput: boolean;
}

/** A logprob that is written as the bare word NaN. */
const NAN_MARK = "\u0000NaN";

type Body = Record<string, unknown>;

/** The whole answer of a finished request. */
export function answerBody(request: EngineRequest, nowMs: number): Body {
  const to = request.generation.outputIds.length;
  return frameBody(request, { from: 0, to, textFrom: 0, withInput: true }, nowMs);
}

/** One frame; the last one if it covers all ids of a finished request. */
export function frameBody(request: EngineRequest, span: FrameSpan, nowMs: number): Body {
  const { generation } = request;
  const last = request.finish !== null && span.to === generation.outputIds.length;
  if (last && request.endedInQueue) return queueAbortBody(request, nowMs);
  const { item, prompt } = generation.input;
  const text = last ? generation.text.whole : generation.text.shown(span.to);
  const meta: Body = {
    id: request.rid,
    finish_reason: last ? request.finish : null,
    prompt_tokens: prompt.length,
    weight_version: request.weightVersion,
    num_retractions: request.retractions,
    ...(item.returnLogprob ? logprobFields(request, span) : {}),
    reasoning_tokens: 0,
    completion_tokens: span.to,
    cached_tokens: request.cachedTokens,
    ...(generation.input.notesKeptIds ? keptIdFields(generation.keptIds.slice(span.from, span.to)) : {}),
    ...(last ? endFields(request) : {}),
  };
  if (last) meta.e2e_latency = (nowMs - request.startedAtMs) / 1000;
  const body: Body = {
    text: text.slice(span.textFrom),
    output_ids: generation.outputIds.slice(span.from, span.to),
    ...(item.returnPromptTokenIds ? { prompt_token_ids: [...prompt] } : {}),
    meta_info: meta,
  };
  distort(request, { body, meta, from: span.from });
  return body;
}

/** The JSON text of a body. */
export function bodyText(body: unknown): string {
  const text = JSON.stringify(body);
  return text.includes("\\u0000NaN") ? text.replaceAll(JSON.stringify(NAN_MARK), "NaN") : text;
}

/** An abort in the queue knows little; a stream's last frame then holds the last id alone. */
function queueAbortBody(request: EngineRequest, nowMs: number): Body {
  const { outputIds, text, input } = request.generation;
  return {
    text: text.whole,
    output_ids: input.item.stream ? outputIds.slice(-1) : [...outputIds],
    meta_info: {
      id: request.rid,
      finish_reason: request.finish,
      weight_version: request.weightVersion,
      e2e_latency: (nowMs - request.startedAtMs) / 1000,
    },
  };
}

/** Arrays as slime's SGLang sends them: little-endian int32 in base64. */
function keptIdFields(rows: readonly (readonly number[])[]): Body {
  const offsets = new Int32Array(rows.length + 1);
  for (const [at, row] of rows.entries()) offsets[at + 1] = offsets[at]! + row.length;
  return { top_p_token_ids: base64Of(Int32Array.from(rows.flat())), top_p_token_offsets: base64Of(offsets) };
}

/** What is known at the end alone. */
function endFields({ generation, experts, draftTokens }: EngineRequest): Body {
  const { outputIds, input: { prompt, item } } = generation;
  const fields: Body = draftTokens === null ? {} : speculationFields(outputIds, draftTokens);
  if (experts !== null && item.returnRoutedExperts) {
    const ids = Uint32Array.from([...prompt, ...outputIds]);
    // Nothing is computed from the last id.
    const range = { from: item.routedExpertsStartLen, to: ids.length - 1 };
    fields.routed_experts = base64Of(routedExperts(ids, range, experts));
  }
  return fields;
}

function base64Of(array: Int32Array<ArrayBuffer>): string {
  return new Uint8Array(array.buffer).toBase64();
}

function logprobFields(request: EngineRequest, span: FrameSpan): Body {
  const { inputRows, outputRows, input } = request.generation;
  const { topLogprobsNum, flatTopLogprobs: form, tokenIdsLogprob } = input.item;
  const own = <Row>(rows: readonly Row[]): Row[] => rows.slice(span.from, span.to);
  const given = <Row>(rows: readonly Row[]): Row[] => span.withInput ? rows.slice() : [];
  const fields: Body = {
    input_token_logprobs: given(inputRows.tokens),
    output_token_logprobs: own(outputRows.tokens),
    output_token_logprobs_length: span.to,
  };
  if (topLogprobsNum > 0) {
    if (form === "off") fields.input_top_logprobs = given(inputRows.top);
    else if (span.withInput) Object.assign(fields, flatTopLogprobs(inputRows.top, { width: topLogprobsNum, form }));
    fields.output_top_logprobs = own(outputRows.top);
  }
  if (tokenIdsLogprob !== null) {
    fields.input_token_ids_logprobs = given(inputRows.chosen);
    fields.output_token_ids_logprobs = own(outputRows.chosen);
  }
  return fields;
}

/** Applies the faults that falsify an answer; `from` is the output position of the first id in it. */
function distort(request: EngineRequest, { body, meta, from }: { body: Body; meta: Body; from: number }): void {
  const { faults, generation } = request;
  if (faults.all.length === 0) return;
  const ids = generation.outputIds.slice(from, from + listOf(body.output_ids).length);
  const entries = copyEntries(generation.outputRows, { from, count: ids.length });
  const wrongId = faults.get("output_id");
  if (wrongId !== null && ids[wrongId.at - from] !== undefined) {
    ids[wrongId.at - from] = wrongId.id;
    const entry = entries[wrongId.at - from];
    if (wrongId.everywhere === true && entry !== undefined) entry[1] = wrongId.id;
    body.output_ids = ids;
  }
  const wrongLogprob = faults.get("logprob");
  const hit: (number | string | null)[] | undefined = wrongLogprob === null
    ? undefined
    : entries[wrongLogprob.at - from];
  if (wrongLogprob !== null && hit !== undefined) hit[0] = wrongLogprob.value === "NaN" ? NAN_MARK : wrongLogprob.value;
  if (meta.output_token_logprobs !== undefined) {
    const problem = faults.get("logprobs")?.problem;
    if (problem === "short") entries.pop();
    if (problem === "long") entries.push([-1, 0, null]);
    if (problem === "missing") delete meta.output_token_logprobs;
    else meta.output_token_logprobs = entries;
  }
  const input = faults.get("input_logprobs")?.problem;
  if (input !== undefined && meta.input_token_logprobs !== undefined) {
    distortInput(input, { rows: generation.inputRows, meta });
  }
  for (const name of faults.get("meta")?.drop ?? []) delete meta[name];
}

function distortInput(
  problem: "missing" | "short" | "shifted" | "null" | "wrong_id",
  { rows, meta }: { rows: LogprobRows; meta: Body },
): void {
  const entries = copyEntries(rows, { from: 0, count: rows.tokens.length });
  const last = entries.at(-1);
  if (problem === "short") entries.pop();
  if (problem === "shifted") entries.shift();
  if (problem === "null" && last !== undefined) last[0] = null;
  if (problem === "wrong_id" && last !== undefined) last[1] += 1;
  if (problem === "missing") delete meta.input_token_logprobs;
  else meta.input_token_logprobs = entries;
}

function copyEntries(rows: LogprobRows, { from, count }: { from: number; count: number }): LogprobEntry[] {
  return rows.tokens.slice(from, from + count).map(([logprob, id, text]) => [logprob, id, text]);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
