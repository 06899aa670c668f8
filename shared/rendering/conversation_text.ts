/**
 * Conversations and increments as text, for one model: the template, the tokens that close a turn, the roles that may be
 * appended. It does not encode.
 */

import { VerbatimError } from "../core/errors.ts";
import type { Conversation, Message } from "../core/message.ts";
import { Increment, type IncrementRequest } from "./increment.ts";
import { plain, slice, type Text } from "./jinja/text.ts";
import { keepsReasoning } from "./kept_reasoning.ts";
import type { PromptTemplate } from "./prompt_template.ts";

export interface ConversationTextOptions {
  readonly prompt: PromptTemplate;
  /** Texts of the tokens that end a turn. */
  readonly stopTexts: readonly string[];
  /** Texts of tokens that close a turn, and of the closers that the template writes in their stead. */
  readonly closedBy: ReadonlyMap<string, string>;
}

export class ConversationText {
  readonly #prompt: PromptTemplate;
  readonly #increment: Increment;
  readonly #stopTexts: readonly string[];
  readonly #closedBy: ReadonlyMap<string, string>;
  /** Roles the template can't append, with the reason. */
  readonly #refusedRoles = new Map<Message["role"], string>();
  #needsCallNames = false;
  /** Why a reply can't hold several calls, or null. */
  #singleCallReason: string | null = null;

  constructor(options: ConversationTextOptions) {
    this.#prompt = options.prompt;
    this.#increment = new Increment(options.prompt, { stopTexts: options.stopTexts });
    this.#stopTexts = options.stopTexts;
    this.#closedBy = options.closedBy;
  }

  promptText(conversation: Conversation, addGenerationPrompt: boolean): Text {
    this.#mustTakeCalls(conversation.messages);
    return this.#prompt.render({ ...conversation, addGenerationPrompt });
  }

  /** Whether the template writes the reasoning of these assistant messages, where they stand. */
  keepsReasoning(conversation: Conversation, assistants: readonly number[]): boolean {
    return keepsReasoning(this.#prompt, conversation, assistants);
  }

  /** `lastText` is the text of the series' last token if it is one that ends a turn, else null. */
  incrementText(request: IncrementRequest, lastText: string | null): Text {
    for (const message of request.appended) {
      const reason = this.#refusedRoles.get(message.role);
      if (reason === undefined) continue;
      throw new VerbatimError(
        "unsupported",
        `A ${message.role} message can't follow a reply of this model: ${reason}`,
        {
          details: { field: `messages.${message.source}.role`, reason },
        },
      );
    }
    if (this.#needsCallNames) mustNameCalls(request);
    this.#mustTakeCalls(request.appended);
    const text = this.#increment.render(request);
    if (lastText === null) return text;
    if (plain(text).startsWith(lastText)) return slice(text, lastText.length);
    const instead = this.#closedBy.get(lastText);
    return instead !== undefined && plain(text).startsWith(instead) ? slice(text, instead.length) : text;
  }

  /** The token that ends the turn before an increment, as the increment itself writes it; null where it writes none. */
  closerOf(increment: string): string | null {
    const closers = [...this.#stopTexts, ...this.#closedBy.values()].filter((text) => increment.startsWith(text));
    return closers.sort((one, other) => other.length - one.length)[0] ?? null;
  }

  #mustTakeCalls(messages: readonly Message[]): void {
    const reason = this.#singleCallReason;
    if (reason === null) return;
    for (const message of messages) {
      if (message.role !== "assistant" || message.toolCalls.length < 2) continue;
      throw new VerbatimError(
        "unsupported",
        `The chat template writes one call a reply, and message ${message.source} makes ${message.toolCalls.length}.`,
        { details: { field: `messages.${message.source}.tool_calls`, reason } },
      );
    }
  }

  refuseRole(role: Message["role"], reason: string): void {
    this.#refusedRoles.set(role, reason);
  }

  /** From now on a message with several calls is refused. */
  refuseParallelCalls(reason: string): void {
    this.#singleCallReason = reason;
  }

  /** From now on results can be appended only where the calls they answer are told: the template writes their names. */
  needCallNames(): void {
    this.#needsCallNames = true;
  }
}

function mustNameCalls(request: IncrementRequest): void {
  const known = new Set(request.calls.map((call) => call.id));
  for (const message of request.appended) {
    if (message.role !== "tool") return;
    if (known.has(message.toolCallId)) continue;
    throw new VerbatimError(
      "unsupported",
      `The chat template writes the name of the function with its result, and no call has the id ${message.toolCallId}.`,
      { details: { field: `messages.${message.source}.tool_call_id`, reason: "unknown call" } },
    );
  }
}
