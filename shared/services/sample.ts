/** One engine call from a token series to an assistant message. It knows nothing of tasks: what it samples is not recorded here. */

import { VerbatimError } from "../core/errors.ts";
import type { Conversation } from "../core/message.ts";
import { isConstrained, type SamplingParams } from "../core/sampling.ts";
import type { TokenSeries } from "../core/token_series.ts";
import type { VersionSegment } from "../core/turn.ts";
import type { ParserRequest } from "../ports/renderer.ts";
import type { ParseDelta } from "../ports/completion_parser.ts";
import type { Model } from "./model_catalog.ts";
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
  readonly tools: Conversation["tools"];
  readonly toolChoice: ParserRequest["toolChoice"];
  readonly opensReasoning: boolean;
}

/** Tokens and what they say, as they come, then the whole. */
export type SampleEvent =
  | {
    readonly type: "tokens";
    readonly ids: readonly number[];
    readonly logprobs: readonly number[];
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
    /** As in the engine port. */
    readonly weightVersions: readonly VersionSegment[] | null;
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
  const call = {
    rid: request.rid,
    input: request.input,
    sampling,
    routingKey: request.routingKey,
    stream: request.stream,
  };
  try {
    for await (const chunk of model.engine.generate(call, signal)) {
      if (chunk.type === "tokens") {
        yield { ...chunk, ...reader.push(chunk.ids, chunk.logprobs) };
        continue;
      }
      if (chunk.type === "aborted") {
        throw new VerbatimError("engine_failed", "The engine aborted the generation", {
          details: { engine_message: chunk.message.slice(0, 500), aborted: true },
        });
      }
      const rest = reader.finish(chunk.finish);
      const { cachedTokens, weightVersion, weightVersions = null } = chunk;
      yield { type: "end", ...rest, cachedTokens, weightVersion, weightVersions };
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
