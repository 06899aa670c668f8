/** One engine call from a token series to an assistant message. It knows nothing of tasks: what it samples is not recorded here. */

import { VerbatimError } from "../../core/errors.ts";
import type { Conversation } from "../../core/message.ts";
import { isConstrained, type SamplingParams } from "../../core/sampling.ts";
import type { TaskSettings } from "../../core/task.ts";
import type { TokenSeries } from "../../core/token_series.ts";
import type { TeacherAction, VersionSegment } from "../../core/turn.ts";
import type { EngineExtras, ExtrasAsked, TopLogprobs } from "../../ports/engine.ts";
import type { ParserRequest } from "../../ports/renderer.ts";
import type { ParseDelta } from "../../ports/completion_parser.ts";
import type { Model } from "../model_catalog.ts";
import { CompletionReader, type ReadCompletion } from "./read_completion.ts";

/** What is sampled from. */
export interface SampleRequest {
  readonly model: Model;
  readonly rid: string;
  readonly input: TokenSeries;
  /** Sent as it is, but for the model's own stop tokens, which are added. `max_new_tokens` is set. */
  readonly sampling: SamplingParams;
  readonly routingKey: string | null;
  readonly stream: boolean;
  /** As in the engine port. */
  readonly topLogprobs?: number;
  readonly tools: Conversation["tools"];
  readonly toolChoice: ParserRequest["toolChoice"];
  readonly opensReasoning: boolean;
  /** Whose turn it is in the queue before the engine, as in `Generations`. */
  readonly fairKey: string;
  /** What an abort by the engine makes of it, as in `Generations`. */
  readonly onAbort: TaskSettings["onAbort"];
  /** What is wanted beside the tokens, as in the engine port. */
  readonly extras?: ExtrasAsked;
}

/** Tokens and what they say, as they come, then the whole. */
export type SampleEvent =
  | {
    readonly type: "tokens";
    readonly ids: readonly number[];
    readonly logprobs: readonly number[];
    readonly top?: readonly TopLogprobs[];
    readonly text: string;
    readonly deltas: readonly ParseDelta[];
  }
  | {
    readonly type: "end";
    readonly text: string;
    readonly deltas: readonly ParseDelta[];
    readonly completion: ReadCompletion;
    readonly cachedTokens: number | null;
    readonly weightVersion: string | null;
    /** Which weights sampled what; they cover all tokens. */
    readonly weightVersions: readonly VersionSegment[];
    /** How often it went on after an abort by the engine. */
    readonly resumed: number;
    /** Time that was not the engine's. */
    readonly waitedMs: number;
    /** What was asked for beside the tokens; absent where the policy was not asked. */
    readonly extras?: EngineExtras;
    /** Of an action that the teacher decided: what it was asked with, and what is known of it. */
    readonly teacher?: { readonly sampling: SamplingParams; readonly said: TeacherAction };
  };

/** The sampling parameters that reach the engine: the model's stop tokens are always among the stops. */
export function withStops(model: Model, sampling: SamplingParams): SamplingParams {
  const stops = [...new Set([...model.renderer.stopTokenIds, ...sampling.stop_token_ids ?? []])];
  return { ...sampling, stop_token_ids: stops };
}

/** Samples. Failures are thrown as the engine port says; nothing of a failed call is a result. */
export async function* sample(request: SampleRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
  const { model } = request;
  const sampling = withStops(model, request.sampling);
  const reader = new CompletionReader({
    decoder: model.renderer.tokenizer.decoder(),
    parser: model.renderer.parser({
      tools: request.tools,
      toolChoice: request.toolChoice,
      opensReasoning: request.opensReasoning,
    }),
    stopTokenIds: new Set(sampling.stop_token_ids),
    stopStrings: sampling.stop ?? [],
  });
  const { tokenizer } = model.renderer;
  const { rid, input, routingKey, stream, fairKey, onAbort } = request;
  const call = {
    engine: model.engine,
    rid,
    input,
    sampling,
    routingKey,
    stream,
    fairKey,
    onAbort,
    ...(request.extras === undefined ? {} : { extras: request.extras }),
    ...(request.topLogprobs === undefined ? {} : { topLogprobs: request.topLogprobs }),
    decode: (ids: readonly number[]) => tokenizer.decode(ids),
  };
  try {
    for await (const chunk of model.generations.run(call, signal)) {
      if (chunk.type === "tokens") {
        yield { ...chunk, ...reader.push(chunk.ids, chunk.logprobs) };
        continue;
      }
      const rest = reader.finish(chunk.finish);
      const { cachedTokens, weightVersion, weightVersions, resumed, waitedMs, extras } = chunk;
      yield { type: "end", ...rest, cachedTokens, weightVersion, weightVersions, resumed, waitedMs, extras };
    }
  } catch (thrown) {
    throw grammarRefusal(thrown, sampling) ?? thrown;
  }
}

/** A grammar that the engine can't compile is a request it can't take, not a failure of the engine. */
function grammarRefusal(thrown: unknown, sampling: SamplingParams): VerbatimError | null {
  if (!isConstrained(sampling) || !(thrown instanceof VerbatimError) || thrown.code !== "engine_failed") return null;
  const said = thrown.details?.engine_message;
  if (typeof said !== "string" || !/^Failed to compile \w+ grammar/.test(said)) return null;
  return new VerbatimError("unsupported", `The engine can't enforce the grammar: ${said}`, { cause: thrown });
}
