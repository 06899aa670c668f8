/**
 * A turn that the teacher executes: its action as the student's own tokens, read as if they had been sampled. It knows
 * neither tasks nor how turns are kept.
 */

import { type CanonicalAction, isSameAction, readAction } from "../core/canonical_action.ts";
import { VerbatimError } from "../core/errors.ts";
import type { Conversation } from "../core/message.ts";
import { isConstrained, type SamplingParams } from "../core/sampling.ts";
import type { ParsedCompletion } from "../ports/completion_parser.ts";
import type { Renderer } from "../ports/renderer.ts";
import { cutAtStop } from "./cut_at_stop.ts";
import { countCalls } from "./generate.ts";
import type { TeacherLabeller } from "./label_turn.ts";
import { CompletionReader } from "./read_completion.ts";
import { ANYWHERE, renderAction } from "./render_action.ts";
import { type SampleEvent, type SampleRequest, withStops } from "./sample.ts";

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
  const { labeller, conversation, model: { renderer } } = request;
  const limit = request.sampling.max_new_tokens ?? Infinity;
  const stops = withStops(request.model, request.sampling);
  const label = await labeller.label({ conversation }, {
    maxTokens: request.sampling.max_new_tokens ?? null,
    rid: request.rid,
    fairKey: request.fairKey,
    toolChoice: request.toolChoice,
    grammar: teachersGrammar(request),
  }, signal);
  if (label.action === null) throw failed(label.reason);
  const rendered = await studentTokens(label.action, request, signal);
  const cut = cutAtStop(rendered, stops, renderer.tokenizer);
  if (cut === null) throw failed("the student's format does not end its action");
  if (cut.ids.length > limit) {
    throw failed(`its action takes ${cut.ids.length} tokens in the student's format, and the turn has ${limit} left`);
  }
  const reader = new CompletionReader({
    decoder: renderer.tokenizer.decoder(),
    parser: renderer.parser(request),
    stopTokenIds: new Set(stops.stop_token_ids),
    stopStrings: stops.stop ?? [],
  });
  const ids = Array.from(cut.ids);
  const logprobs = ids.map(() => 0);
  const pushed = reader.push(ids, logprobs);
  const rest = reader.finish(cut.finish);
  // What a stop of the agent's own cuts off is missing, as it would be of the student's reply.
  const expected = cut.ids.length === rendered.length ? label.action : null;
  if (!says(rest.completion.parsed, expected, renderer)) {
    throw failed("the student's format does not say what it decided");
  }
  yield { type: "tokens", ids, logprobs, ...pushed };
  const { droppedCalls, sampling, weightVersion } = label;
  yield {
    type: "end",
    ...rest,
    cachedTokens: null,
    weightVersion: null,
    weightVersions: [],
    resumed: 0,
    waitedMs: 0,
    teacher: { sampling, said: { model: labeller.name, weightVersion, droppedCalls } },
  };
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

async function studentTokens(
  action: CanonicalAction,
  { conversation, model }: TeacherTurnRequest,
  signal: AbortSignal,
): Promise<Uint32Array> {
  const { tools, settings } = conversation;
  try {
    return await renderAction(action, model.renderer, {
      conversation: { ...ANYWHERE, tools, settings },
      priorCalls: countCalls(conversation),
      signal,
    });
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof VerbatimError)) throw cause;
    throw failed(`${cause.code}: ${cause.message}`, { cause });
  }
}

/** Whether a reply is whole and says this; of a student that does not reason, reasoning aside. */
function says(parsed: ParsedCompletion, expected: CanonicalAction | null, renderer: Renderer): boolean {
  if (parsed.parse.status !== "ok") return false;
  if (expected === null) return true;
  const { reasoning, ...unreasoned } = expected;
  const wanted = renderer.reasoningParser === null || reasoning === undefined ? unreasoned : expected;
  const read = readAction(parsed);
  return read.action !== null && isSameAction(read.action, wanted);
}

function failed(
  reason: string,
  options: { readonly retryable?: boolean; readonly cause?: unknown } = {},
): VerbatimError {
  return new VerbatimError("teacher_failed", `The turn is the teacher's, and it can't be had: ${reason}`, {
    details: { reason },
    ...options,
  });
}
