/**
 * A turn that the teacher executes: its action as the student's own tokens, read as if they had been sampled. It knows
 * neither tasks nor how turns are kept.
 */

import type { CanonicalAction } from "../../core/canonical_action.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { Conversation } from "../../core/message.ts";
import { isConstrained, type SamplingParams } from "../../core/sampling.ts";
import type { TeacherLabeller } from "./label_turn.ts";
import { type SampleEvent, type SampleRequest, withStops } from "../turns/sample.ts";
import { sayAsStudent, type StudentAction } from "./say_as_student.ts";

/** What the policy would be asked, and who is asked in its place. */
export interface TeacherTurnRequest extends SampleRequest {
  readonly labeller: TeacherLabeller;
  /** What the teacher is shown, in its own template. */
  readonly conversation: Conversation;
}

/**
 * The teacher's action as the events of a call: the tokens with which the student would have acted so, whole, their stop
 * the last of them. Nobody sampled them: their logprobs are 0.0, and no weights of the policy are theirs.
 *
 * The agent's answer is what the student's own parser reads in these tokens. Where the teacher decides nothing, where the
 * student's format does not say what it decided, and where its action is too long for the turn, the turn is
 * `teacher_failed`: it never becomes the student's.
 */
export async function* teacherTurn(request: TeacherTurnRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
  const { labeller, conversation } = request;
  const label = await labeller.label({ conversation }, {
    maxTokens: request.sampling.max_new_tokens ?? null,
    rid: request.rid,
    fairKey: request.fairKey,
    toolChoice: request.toolChoice,
    grammar: teachersGrammar(request),
  }, signal);
  if (label.action === null) throw failed(label.reason);
  const { droppedCalls, sampling, weightVersion } = label;
  const { pushed, rest, leftOut } = await saidBy(request, label.action, signal);
  const { ids, logprobs } = rest.completion;
  yield { type: "tokens", ids: Array.from(ids), logprobs, ...pushed };
  yield {
    type: "end",
    ...rest,
    cachedTokens: null,
    weightVersion: null,
    weightVersions: [],
    resumed: 0,
    waitedMs: 0,
    teacher: { sampling, said: { model: labeller.name, weightVersion, droppedCalls, leftOut } },
  };
}

/** The action in the student's format, if that has it and the turn has room for it. */
async function saidBy(
  { conversation, model, sampling, ...reading }: TeacherTurnRequest,
  action: CanonicalAction,
  signal: AbortSignal,
): Promise<StudentAction> {
  const place = { ...reading, conversation, renderer: model.renderer, stops: withStops(model, sampling) };
  const said = await sayAsStudent(action, place, signal);
  if ("reason" in said) throw failed(said.reason);
  const { length } = said.rest.completion.ids;
  const limit = sampling.max_new_tokens ?? Infinity;
  if (length <= limit) return said;
  throw failed(`its action takes ${length} tokens in the student's format, and the turn has ${limit} left`);
}

/**
 * The grammar of the request, which the teacher must keep to as well. It is written in the student's format, so it holds
 * only a teacher that writes the same. Stops that are regular expressions are an engine's to find.
 */
function teachersGrammar({ sampling, labeller, model }: TeacherTurnRequest): SamplingParams {
  if ((sampling.stop_regex ?? []).length > 0) {
    throw failed("stop_regex ends no action that an engine did not sample", { retryable: false });
  }
  if (!isConstrained(sampling)) return {};
  if (labeller.renderer !== model.renderer) {
    throw failed("the request's grammar is of the student's format, and the teacher has another", { retryable: false });
  }
  const { json_schema, regex, ebnf, structural_tag } = sampling;
  return { json_schema, regex, ebnf, structural_tag };
}

function failed(reason: string, options: { readonly retryable?: boolean } = {}): VerbatimError {
  return new VerbatimError("teacher_failed", `The turn is the teacher's, and it can't be had: ${reason}`, {
    details: { reason },
    ...options,
  });
}
