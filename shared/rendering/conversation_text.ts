/**
 * Conversations and increments as text, for one model: the template, the tokens that close a turn, the roles that may be
 * appended. It does not encode.
 */

import { VerbatimError } from "../core/errors.ts";
import type { Conversation, Message } from "../core/message.ts";
import { Increment, type IncrementRequest } from "./increment.ts";
import { plain, slice, type Text } from "./jinja/text.ts";
import type { PromptTemplate } from "./prompt_template.ts";

export interface ConversationTextOptions {
  readonly prompt: PromptTemplate;
  /** Texts of the tokens that end a turn. */
  readonly stopTexts: readonly string[];
  /** Texts of tokens that close a turn in the stead of the template's closer. */
  readonly closedBy: readonly string[];
}

export class ConversationText {
  readonly #prompt: PromptTemplate;
  readonly #increment: Increment;
  readonly #stopTexts: readonly string[];
  readonly #closedBy: readonly string[];
  /** Roles the template can't append, with the reason. */
  readonly #refusedRoles = new Map<Message["role"], string>();
  #needsCallNames = false;

  constructor(options: ConversationTextOptions) {
    this.#prompt = options.prompt;
    this.#increment = new Increment(options.prompt, { stopTexts: options.stopTexts });
    this.#stopTexts = options.stopTexts;
    this.#closedBy = options.closedBy;
  }

  promptText(conversation: Conversation, addGenerationPrompt: boolean): Text {
    return this.#prompt.render({ ...conversation, addGenerationPrompt });
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
    const text = this.#increment.render(request);
    if (lastText === null) return text;
    if (plain(text).startsWith(lastText)) return slice(text, lastText.length);
    if (!this.#closedBy.includes(lastText)) return text;
    const closer = this.#stopTexts.find((stop) => plain(text).startsWith(stop));
    return closer === undefined ? text : slice(text, closer.length);
  }

  refuseRole(role: Message["role"], reason: string): void {
    this.#refusedRoles.set(role, reason);
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
