/** Runs one generation for the clients that wait for it and, in a task, commits it as a turn. */

import type { AssistantMessage } from "../../core/message.ts";
import type { Located } from "../../core/locate.ts";
import { basisOf, type SamplingParams } from "../../core/sampling.ts";
import type { KeptInput } from "../../core/kept_input.ts";
import type { TaskRecord } from "../../core/task.ts";
import { packLogprobs } from "../../core/turn_codec.ts";
import type { TokenSeries } from "../../core/token_series.ts";
import type { TurnRecord } from "../../core/turn.ts";
import type { EngineExtras, TopLogprobs } from "../../ports/engine.ts";
import type { ParseDelta } from "../../ports/completion_parser.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { AgentCall } from "./agent_call.ts";
import type { ExtrasPlan } from "../extras/capture_extras.ts";
import type { Uncommitted } from "./commit_turn.ts";
import { countCalls } from "../generate.ts";
import type { TeacherLabeller } from "../teacher/label_turn.ts";
import { sample, type SampleEvent, withStops } from "./sample.ts";
import type { Answer, AnswerDelta, SharedCall } from "./shared_call.ts";
import { teacherTurn } from "../teacher/teacher_turn.ts";

/** A prompt ready to be sampled from. */
export interface PreparedTurn {
  readonly agent: AgentCall;
  /** The task it is recorded in, or null. */
  readonly task: TaskRecord | null;
  /** The turn whose series is extended, or null. */
  readonly parent: number | null;
  /** The turn whose series the template would write otherwise now, or null. */
  readonly rewriteOf: number | null;
  /** How the request relates to earlier turns; null where nothing is recorded. */
  readonly place: Located | null;
  /** Tokens that the parent's series does not hold. */
  readonly observation: Uint32Array;
  /** Everything the engine is given. */
  readonly prompt: TokenSeries;
  readonly opensReasoning: boolean;
  /** `max_new_tokens` is set. */
  readonly sampling: SamplingParams;
  readonly ignoredFields: readonly string[];
  /** The conversation, where it is kept. */
  readonly input: KeptInput | null;
  readonly digest: string;
  readonly rid: string;
  readonly answerId: string;
  /** Who acts in the policy's place, or null. */
  readonly teacher: TeacherLabeller | null;
  /** What is captured beside tokens, or null. */
  readonly extras: ExtrasPlan | null;
}

/** What a finished generation gives: the answer without its turn, and the turn without its number and place. */
export interface GeneratedTurn {
  readonly answer: Answer;
  readonly turn: Uncommitted["turn"];
  /** What the engine said beside the tokens; undefined where the policy was not asked. */
  readonly extras: EngineExtras | undefined;
}

/** Samples to the end, emitting what is certain to the waiting clients. The `end` event is left to the caller, after the commit. */
export async function runTurn(
  prepared: PreparedTurn,
  call: SharedCall,
  context: { readonly clock: Clock; readonly ids: Ids },
): Promise<GeneratedTurn> {
  const { clock, ids } = context;
  const { agent } = prepared;
  const { renderer } = agent.model;
  const engineStartedAtMs = clock.now();
  const createdAtS = Math.floor(agent.arrivedAtMs / 1000);
  const priorCalls = countCalls(agent.conversation);
  const toolCalls: { id: string; name: string; arguments: string }[] = [];
  let started = false;

  function answerDelta(delta: ParseDelta): AnswerDelta {
    if (delta.type !== "tool_call") return delta;
    const index = toolCalls.length;
    const toolCall = {
      id: renderer.callId({ name: delta.name, priorCalls: priorCalls + index, random: (digits) => ids.hex(digits) }),
      name: delta.name,
      arguments: delta.arguments,
    };
    toolCalls.push(toolCall);
    return { type: "tool_call", index, ...toolCall };
  }

  const topLogprobs: TopLogprobs[] = [];
  let end: Extract<SampleEvent, { type: "end" }> | null = null;
  const request = {
    model: agent.model,
    rid: prepared.rid,
    input: prepared.prompt,
    sampling: prepared.sampling,
    routingKey: prepared.task?.settings.routingKey ?? null,
    stream: agent.stream,
    ...(agent.topLogprobs === undefined ? {} : { topLogprobs: agent.topLogprobs }),
    tools: agent.conversation.tools,
    toolChoice: agent.toolChoice,
    opensReasoning: prepared.opensReasoning,
    fairKey: agent.fairKey,
    onAbort: prepared.task?.settings.onAbort ?? "resume",
    ...(prepared.extras === null ? {} : { extras: prepared.extras.asked }),
  } as const;
  const { teacher: labeller } = prepared;
  const events = labeller === null
    ? sample(request, call.signal)
    : teacherTurn({ ...request, labeller, conversation: agent.conversation }, call.signal);
  for await (const event of events) {
    if (!started) {
      started = true;
      call.emit({
        type: "started",
        answerId: prepared.answerId,
        createdAtS,
        model: agent.modelName,
        promptTokens: prepared.prompt.length,
      });
    }
    // Nobody sampled a teacher's tokens: there is no logprob to show.
    if (event.type === "tokens" && labeller === null) {
      const { ids, logprobs, top } = event;
      // One by one: a whole answer's lists are more than a call may have arguments.
      for (const list of top ?? []) topLogprobs.push(list);
      if (agent.stream) call.emit({ type: "tokens", ids, logprobs, ...(top === undefined ? {} : { top }) });
    }
    for (const delta of event.deltas) call.emit({ type: "delta", delta: answerDelta(delta) });
    if (event.type === "end") end = event;
  }
  if (end === null) throw new Error("The engine ended without an end");

  const { completion } = end;
  const reasoningTokens = renderer.reasoningParser === null ? null : completion.reasoningTokens;
  const engineEndedAtMs = clock.now();
  const unformed = {
    role: "assistant",
    source: -1,
    content: completion.parsed.content ?? "",
    reasoning: completion.parsed.reasoning,
    toolCalls,
  } as const;
  const reply: AssistantMessage = { ...unformed, form: agent.formOf(unformed) };
  const answer: Answer = {
    turn: null,
    answerId: prepared.answerId,
    createdAtS,
    model: agent.modelName,
    reply,
    finishReason: completion.finishReason,
    stopString: completion.finish.type === "stop" && typeof completion.finish.matched === "string"
      ? completion.finish.matched
      : null,
    promptTokens: prepared.prompt.length,
    cachedTokens: end.cachedTokens,
    reasoningTokens,
    prompt: prepared.prompt,
    completionTokens: completion.ids.length,
    completion: completion.ids,
    logprobs: labeller === null ? completion.logprobs : null,
    topLogprobs: topLogprobs.length === 0 ? null : topLogprobs,
  };
  const sent = end.teacher?.sampling ?? withStops(agent.model, prepared.sampling);
  const record: TurnRecord = {
    turn: -1,
    parent: prepared.parent,
    ...(prepared.rewriteOf === null ? {} : { rewriteOf: prepared.rewriteOf }),
    digest: prepared.digest,
    finish: completion.finish,
    finishReason: completion.finishReason,
    parse: completion.parsed.parse,
    closed: completion.closed,
    promptTokens: prepared.prompt.length,
    observationTokens: prepared.observation.length,
    completionTokens: completion.ids.length,
    reasoningTokens,
    cachedTokens: end.cachedTokens,
    weightVersions: end.weightVersions,
    ...(end.resumed === 0 ? {} : { resumed: end.resumed }),
    sampling: sent,
    basis: basisOf(sent),
    ignoredFields: prepared.ignoredFields,
    dialect: agent.dialect,
    model: agent.modelName,
    ...(end.teacher === undefined ? { actor: "policy" } : { actor: "teacher", teacher: end.teacher.said }),
    rid: prepared.rid,
    answerId: prepared.answerId,
    startedAtMs: agent.arrivedAtMs,
    durationMs: clock.now() - agent.arrivedAtMs,
    engineMs: engineEndedAtMs - engineStartedAtMs - end.waitedMs,
    waitMs: engineStartedAtMs - agent.arrivedAtMs + end.waitedMs,
  };
  return {
    answer,
    extras: end.extras,
    turn: {
      record,
      detail: prepared.input === null ? { reply } : { reply, input: prepared.input },
      observation: prepared.observation,
      completion: completion.ids,
      logprobs: packLogprobs(completion.logprobs),
    },
  };
}
