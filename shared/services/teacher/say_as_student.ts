/** A decision in the student's tokens, read back by the student's own parser. It does not know who decided. */

import { type CanonicalAction, isSameAction, readAction } from "../../core/canonical_action.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { Conversation } from "../../core/message.ts";
import type { SamplingParams } from "../../core/sampling.ts";
import type { TeacherAction } from "../../core/turn.ts";
import type { ParsedCompletion } from "../../ports/completion_parser.ts";
import type { ParserRequest, Renderer } from "../../ports/renderer.ts";
import { cutAtStop } from "./cut_at_stop.ts";
import { countCalls } from "../generate.ts";
import { CompletionReader, type ReadPiece } from "../turns/read_completion.ts";
import { ANYWHERE, renderAction } from "./render_action.ts";

/** Where it is said. */
export interface SayingPlace extends ParserRequest {
  /** The student's. */
  readonly renderer: Renderer;
  readonly conversation: Conversation;
  /** What ends a completion here, the model's own stop tokens among them. */
  readonly stops: Pick<SamplingParams, "stop" | "stop_token_ids">;
}

/** An action in tokens, and as they are read. Their logprobs are 0.0: nobody sampled them. */
export interface StudentAction {
  readonly pushed: ReadPiece;
  readonly rest: ReturnType<CompletionReader["finish"]>;
  /** What was thought or said beside the decision and is not in the tokens. */
  readonly leftOut: TeacherAction["leftOut"];
}

/**
 * The first way of saying the action that the student's format has: whole, or without what was thought or said beside
 * the decision. The tokens are what the template writes, up to the first stop; the student's parser must read in them
 * exactly this action. Where no way does that, the reason.
 */
export async function sayAsStudent(
  action: CanonicalAction,
  place: SayingPlace,
  signal: AbortSignal,
): Promise<StudentAction | { readonly reason: string }> {
  let reason = "the student's format does not say what it decided";
  for (const { said, leftOut } of waysOfSaying(action)) {
    try {
      const found = await readAs(said, place, signal);
      if (found !== null) return { ...found, leftOut };
    } catch (cause) {
      signal.throwIfAborted();
      if (!(cause instanceof VerbatimError)) throw cause;
      reason = cause.message;
    }
  }
  return { reason };
}

/** Null where the student's parser reads something else than this action. */
async function readAs(
  action: CanonicalAction,
  place: SayingPlace,
  signal: AbortSignal,
): Promise<Omit<StudentAction, "leftOut"> | null> {
  const { renderer, stops, conversation: { tools, settings } } = place;
  const rendered = await renderAction(action, renderer, {
    conversation: { ...ANYWHERE, tools, settings },
    priorCalls: countCalls(place.conversation),
    signal,
  });
  const cut = cutAtStop(rendered, stops, renderer.tokenizer);
  if (cut === null) return null;
  const reader = new CompletionReader({
    decoder: renderer.tokenizer.decoder(),
    parser: renderer.parser(place),
    stopTokenIds: new Set(stops.stop_token_ids),
    stopStrings: stops.stop ?? [],
  });
  const ids = Array.from(cut.ids);
  const pushed = reader.push(ids, ids.map(() => 0));
  const rest = reader.finish(cut.finish);
  const { parsed } = rest.completion;
  if (parsed.parse.status !== "ok") return null;
  // What a stop of the agent's own cuts off is missing, as it would be of the student's reply.
  return ids.length < rendered.length || says(parsed, action) ? { pushed, rest } : null;
}

/** The action, then without its reasoning, without the text beside its call, and without both. */
function waysOfSaying(
  action: CanonicalAction,
): { readonly said: CanonicalAction; readonly leftOut: TeacherAction["leftOut"] }[] {
  const { reasoning, ...unreasoned } = action;
  const ways: { said: CanonicalAction; leftOut: TeacherAction["leftOut"] }[] = [{ said: action, leftOut: [] }];
  if (reasoning !== undefined) ways.push({ said: unreasoned, leftOut: ["reasoning"] });
  if (action.kind === "message" || action.text === undefined) return ways;
  const silent = ways.flatMap(({ said, leftOut }) => {
    if (said.kind === "message") return [];
    const { text: _, ...rest } = said;
    return [{ said: rest, leftOut: [...leftOut, "text" as const] }];
  });
  return [...ways, ...silent];
}

/** Whether a reply says this and nothing else. */
function says(parsed: ParsedCompletion, expected: CanonicalAction): boolean {
  const read = readAction(parsed);
  return read.action !== null && read.droppedCalls === 0 && isSameAction(read.action, expected);
}
