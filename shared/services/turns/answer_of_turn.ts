/** The answer that a committed turn gives: the first time, and whenever it is replayed. */

import type { Turn } from "../../core/turn.ts";
import type { Answer, CallEvent } from "./shared_call.ts";
import type { TaskView } from "./task_views.ts";

/** The answer, with the ids it had the first time. */
export function answerOfTurn(turn: Turn, view: TaskView): Answer {
  const { record, detail } = turn;
  return {
    turn: record.turn,
    answerId: record.answerId,
    createdAtS: Math.floor(record.startedAtMs / 1000),
    model: record.model,
    reply: detail.reply,
    finishReason: record.finishReason,
    stopString: record.finish.type === "stop" && typeof record.finish.matched === "string"
      ? record.finish.matched
      : null,
    promptTokens: record.promptTokens,
    cachedTokens: record.cachedTokens,
    reasoningTokens: record.reasoningTokens,
    prompt: view.promptOf(record.turn),
    completionTokens: turn.completion.length,
    completion: turn.completion,
    logprobs: record.actor === "teacher" ? null : turn.logprobs,
    topLogprobs: null,
  };
}

/** An answer as a call's events, in the order in which a first answer sends them. */
export function eventsOfAnswer(answer: Answer): CallEvent[] {
  const { reply } = answer;
  const { answerId, createdAtS, model, promptTokens } = answer;
  const events: CallEvent[] = [{ type: "started", answerId, createdAtS, model, promptTokens }];
  if (reply.reasoning !== null) events.push({ type: "delta", delta: { type: "reasoning", text: reply.reasoning } });
  if (reply.content !== "") events.push({ type: "delta", delta: { type: "content", text: reply.content } });
  reply.toolCalls.forEach((call, index) => {
    events.push({ type: "delta", delta: { type: "tool_call", index, ...call } });
  });
  events.push({ type: "end", answer });
  return events;
}
