/** Agents' calls of text-level models: answered in every dialect, never recorded. */

import { VerbatimError } from "../../core/errors.ts";
import { requestUnits } from "../../core/request_units.ts";
import { TokenSeries } from "../../core/token_series.ts";
import type { FinishReason } from "../../core/turn.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { CallOutcome, Metrics } from "../../ports/metrics.ts";
import type { BackendDelta } from "../../ports/model_backend.ts";
import type { GenerationResult } from "../../schemas/generate.ts";
import type { AgentCall, Following } from "../turns/agent_call.ts";
import { askTextModel } from "./ask_text_model.ts";
import type { CallsInFlight } from "../turns/calls_in_flight.ts";
import { effectiveSampling } from "../turns/effective_sampling.ts";
import type { TextModel } from "../model_catalog.ts";
import { abortError, type Answer, type AnswerDelta, SharedCall } from "../turns/shared_call.ts";

/** A call of a text-level model. */
export interface TextCall extends Omit<AgentCall, "model"> {
  readonly model: TextModel;
  /** False: one call at most. */
  readonly parallelCalls: boolean;
}

/** What the relay needs. */
export interface TextRelayOptions {
  readonly inFlight: CallsInFlight;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly metrics: Metrics;
}

/** Relays calls. A task's finish waits for them and aborts them, as it does recorded ones. */
export class TextRelay {
  readonly #options: TextRelayOptions;

  constructor(options: TextRelayOptions) {
    this.#options = options;
  }

  /** Takes a call. Everything that can fail fails at the waiter. */
  begin(agent: TextCall): Following {
    const { ids, inFlight } = this.#options;
    const call = new SharedCall();
    const following = { waiter: call.join({ streaming: agent.stream }), settled: async () => {} };
    const ended = this.#run(agent, call);
    const task = agent.read?.task ?? null;
    const callId = ids.uuid();
    // Nobody joins it: nothing is recorded, so a repeat is asked again.
    if (task === null) return following;
    const units = requestUnits(agent.conversation, { known: null });
    inFlight.add(task.uid, { callId, digest: callId, call, units, ended });
    return following;
  }

  /** Runs a call to its end; never rejects. */
  async #run(agent: TextCall, call: SharedCall): Promise<void> {
    const { clock, metrics } = this.#options;
    let outcome: CallOutcome = "unrecorded";
    try {
      call.emit({ type: "end", answer: await this.#answer(agent, call) });
    } catch (thrown) {
      const error = call.signal.aborted ? abortError(call.signal.reason) : thrown;
      outcome = `error:${error instanceof VerbatimError ? error.code : "internal"}`;
      call.fail(error);
    }
    metrics.callEnded({ dialect: agent.dialect, outcome, seconds: (clock.now() - agent.arrivedAtMs) / 1000 });
  }

  async #answer(agent: TextCall, call: SharedCall): Promise<Answer> {
    const { ids, metrics } = this.#options;
    const settings = agent.read?.task.settings ?? null;
    if (settings?.capture === true) throw new Error("A call that is to be recorded was given to the relay");
    const head = {
      answerId: ids.hex(24),
      createdAtS: Math.floor(agent.arrivedAtMs / 1000),
      model: agent.modelName,
    };
    let started = false;
    // The prompt is counted at the end: only the last frames know its length.
    const start = (promptTokens: number): void => {
      if (!started) call.emit({ type: "started", ...head, promptTokens });
      started = true;
    };
    let calls = 0;
    const onDelta = (delta: BackendDelta): void => {
      start(0);
      const told: AnswerDelta = delta.type === "tool_call" ? { ...delta, index: calls++ } : delta;
      call.emit({ type: "delta", delta: told });
    };
    const result = await askTextModel(
      {
        model: agent.model,
        conversation: agent.conversation,
        sampling: effectiveSampling(settings, agent.wished).sampling,
        toolChoice: agent.toolChoice,
        parallelCalls: agent.parallelCalls,
        onDelta: agent.stream ? onDelta : undefined,
      },
      metrics,
      call.signal,
    );
    start(result.usage.prompt_tokens);
    const unformed = {
      role: "assistant",
      source: -1,
      content: result.text,
      reasoning: result.reasoning,
      toolCalls: (result.tool_calls ?? []).map(({ id, function: called }) => ({ id, ...called })),
    } as const;
    return {
      ...head,
      turn: null,
      reply: { ...unformed, form: agent.formOf(unformed) },
      finishReason: finishReason(result),
      stopString: null,
      promptTokens: result.usage.prompt_tokens,
      cachedTokens: result.usage.cached_tokens,
      reasoningTokens: result.usage.reasoning_tokens ?? null,
      prompt: TokenSeries.EMPTY,
      completionTokens: result.usage.completion_tokens,
      completion: new Uint32Array(0),
      logprobs: [],
      topLogprobs: null,
    };
  }
}

/** Dialects have words for the ends that a model comes to; any other end is a failure to them. */
function finishReason({ finish_reason: finish }: GenerationResult): FinishReason {
  if (finish === "stop" || finish === "length" || finish === "tool_calls") return finish;
  throw new VerbatimError("engine_failed", `The backend ended its reply with "${finish.replace(/^error:/, "")}"`, {
    retryable: false,
    details: { finish_reason: finish },
  });
}
