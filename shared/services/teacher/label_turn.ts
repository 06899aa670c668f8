/** What would the teacher have done here? Its answer as an action, or why there is none. It touches nothing stored. */

import { type CanonicalAction, readAction } from "../../core/canonical_action.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { Conversation } from "../../core/message.ts";
import type { SamplingParams } from "../../core/sampling.ts";
import { TokenSeries } from "../../core/token_series.ts";
import type { Ids } from "../../ports/ids.ts";
import type { ParserRequest, Renderer } from "../../ports/renderer.ts";
import { tokensLeft } from "../turns/context_length.ts";
import type { Model } from "../model_catalog.ts";
import { sample } from "../turns/sample.ts";

/** A label. `text` is what the teacher said, as far as it said anything. */
export type Label =
  | {
    readonly action: CanonicalAction;
    readonly text: string;
    /** Further calls that the teacher made at once. */
    readonly droppedCalls: number;
    /** The teacher's own tokens. */
    readonly ids: Uint32Array;
    /** What the teacher was asked to sample with. */
    readonly sampling: SamplingParams;
    /** The teacher's weights, or null where its engine told none. */
    readonly weightVersion: string | null;
  }
  | { readonly action: null; readonly reason: string; readonly text: string | null };

/** What is labelled: a conversation, rendered in the teacher's own template, or a sequence as it is. */
export type LabelInput =
  | { readonly conversation: Conversation }
  | { readonly ids: Uint32Array; readonly tools: Conversation["tools"]; readonly opensReasoning: boolean };

/** What holds for one label. */
export interface LabelOptions {
  /** Most tokens of the teacher's own; null: what its context leaves. */
  readonly maxTokens: number | null;
  /** The engine's id of the request; absent: a new one. */
  readonly rid?: string;
  /** Whose turn it is in the queue before the teacher's engine; absent: that of all labels. */
  readonly fairKey?: string;
  /** Absent: the teacher may call. */
  readonly toolChoice?: ParserRequest["toolChoice"];
  /** Grammar that holds the teacher too, in the format of its own renderer. */
  readonly grammar?: SamplingParams;
}

/** How the teacher answers. */
export interface TeacherLabellerOptions {
  readonly model: Model;
  readonly temperature: number;
  readonly topP: number;
  readonly ids: Ids;
}

/** Labels turns. */
export class TeacherLabeller {
  readonly #options: TeacherLabellerOptions;

  constructor(options: TeacherLabellerOptions) {
    this.#options = options;
  }

  /** The teacher's name. */
  get name(): string {
    return this.#options.model.name;
  }

  /** Writes and reads the teacher's own format. */
  get renderer(): Renderer {
    return this.#options.model.renderer;
  }

  /** One label. A teacher that fails, or says what can't be read, is null with the reason; only the caller's abort is thrown. */
  async label(input: LabelInput, options: LabelOptions, signal: AbortSignal): Promise<Label> {
    try {
      return await this.#label(input, options, signal);
    } catch (cause) {
      signal.throwIfAborted();
      if (!(cause instanceof VerbatimError)) throw cause;
      return { action: null, reason: `${cause.code}: ${cause.message}`, text: null };
    }
  }

  async #label(input: LabelInput, options: LabelOptions, signal: AbortSignal): Promise<Label> {
    const { model, temperature, topP, ids } = this.#options;
    const prompt = "conversation" in input ? await model.renderer.renderPrompt(input.conversation, { signal }) : input;
    const tools = "conversation" in input ? input.conversation.tools : input.tools;
    const sampling: SamplingParams = {
      temperature,
      top_p: topP,
      max_new_tokens: tokensLeft({
        promptTokens: prompt.ids.length,
        maxContextTokens: model.maxContextTokens,
        wished: options.maxTokens,
      }),
      ...options.grammar,
    };
    const events = sample({
      model,
      rid: options.rid ?? ids.uuid(),
      input: TokenSeries.of(prompt.ids),
      sampling,
      routingKey: null,
      stream: false,
      tools,
      toolChoice: options.toolChoice ?? "auto",
      opensReasoning: prompt.opensReasoning,
      fairKey: options.fairKey ?? "label",
      onAbort: "resume",
    }, signal);
    for await (const event of events) {
      if (event.type !== "end") continue;
      const { parsed, text, finish, ids: sampled } = event.completion;
      if (finish.type === "length") return { action: null, reason: "truncated", text };
      if (parsed.parse.status !== "ok") return { action: null, reason: parsed.parse.status, text };
      const read = readAction(parsed);
      if (read.action === null) return { ...read, text };
      return { ...read, text, ids: sampled, sampling, weightVersion: event.weightVersion };
    }
    throw new VerbatimError("engine_failed", "The teacher's answer has no end");
  }
}
