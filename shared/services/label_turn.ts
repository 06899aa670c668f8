/** What would the teacher have done here? Its answer as an action, or why there is none. It touches nothing stored. */

import { type CanonicalAction, readAction } from "../core/canonical_action.ts";
import { VerbatimError } from "../core/errors.ts";
import type { Conversation } from "../core/message.ts";
import { TokenSeries } from "../core/token_series.ts";
import type { Ids } from "../ports/ids.ts";
import { tokensLeft } from "./context_length.ts";
import type { Model } from "./model_catalog.ts";
import { sample } from "./sample.ts";

/** A label. `text` is what the teacher said, as far as it said anything. */
export type Label =
  | {
    readonly action: CanonicalAction;
    readonly text: string;
    /** Further calls that the teacher made at once. */
    readonly droppedCalls: number;
    /** The teacher's own tokens. */
    readonly ids: Uint32Array;
  }
  | { readonly action: null; readonly reason: string; readonly text: string | null };

/** What is labelled: a conversation, rendered in the teacher's own template, or a sequence as it is. */
export type LabelInput =
  | { readonly conversation: Conversation }
  | { readonly ids: Uint32Array; readonly tools: Conversation["tools"]; readonly opensReasoning: boolean };

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

  /** One label. A teacher that fails, or says what can't be read, is null with the reason; only the caller's abort is thrown. */
  async label(input: LabelInput, options: { readonly maxTokens: number | null }, signal: AbortSignal): Promise<Label> {
    try {
      return await this.#label(input, options, signal);
    } catch (cause) {
      signal.throwIfAborted();
      if (!(cause instanceof VerbatimError)) throw cause;
      return { action: null, reason: `${cause.code}: ${cause.message}`, text: null };
    }
  }

  async #label(input: LabelInput, options: { readonly maxTokens: number | null }, signal: AbortSignal): Promise<Label> {
    const { model, temperature, topP, ids } = this.#options;
    const prompt = "conversation" in input ? await model.renderer.renderPrompt(input.conversation, { signal }) : input;
    const tools = "conversation" in input ? input.conversation.tools : input.tools;
    const events = sample({
      model,
      rid: ids.uuid(),
      input: TokenSeries.of(prompt.ids),
      sampling: {
        temperature,
        top_p: topP,
        max_new_tokens: tokensLeft({
          promptTokens: prompt.ids.length,
          maxContextTokens: model.maxContextTokens,
          wished: options.maxTokens,
        }),
      },
      routingKey: null,
      stream: false,
      tools,
      toolChoice: "auto",
      opensReasoning: prompt.opensReasoning,
      fairKey: "label",
      onAbort: "resume",
    }, signal);
    for await (const event of events) {
      if (event.type !== "end") continue;
      const { parsed, text, finish, ids: sampled } = event.completion;
      if (finish.type === "length") return { action: null, reason: "truncated", text };
      if (parsed.parse.status !== "ok") return { action: null, reason: parsed.parse.status, text };
      const read = readAction(parsed);
      if (read.action === null) return { ...read, text };
      return { ...read, text, ids: sampled };
    }
    throw new VerbatimError("engine_failed", "The teacher's answer has no end");
  }
}
