/**
 * A chat template with what does not change between conversations: special tokens, defaults, how content is given. It
 * turns a conversation into the template's own text and knows nothing of tokens.
 */

import { VerbatimError } from "../core/errors.ts";
import type { Json, Message, TemplateSettings, ToolCall, ToolDefinition } from "../core/message.ts";
import type { ChatTemplate } from "./chat_template.ts";
import { toTemplateMessages, toTemplateTools } from "./template_messages.ts";

export interface PromptTemplateOptions {
  readonly chatTemplate: ChatTemplate;
  /** `bos_token` and the like. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Settings that hold where a conversation has none of that name. */
  readonly defaults: TemplateSettings;
}

export interface PromptRequest {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  readonly settings: TemplateSettings;
  readonly addGenerationPrompt: boolean;
  /** Calls made before the first message. */
  readonly earlierCalls?: readonly Pick<ToolCall, "id" | "name">[];
}

/** Names that the conversation itself fills. */
const RESERVED = new Set(["messages", "tools", "documents", "add_generation_prompt"]);

export class PromptTemplate {
  readonly #chatTemplate: ChatTemplate;
  readonly #fixed: { readonly [name: string]: Json };
  readonly #takesParts: boolean;

  constructor(options: PromptTemplateOptions) {
    this.#chatTemplate = options.chatTemplate;
    this.#fixed = { ...options.specialTokens, ...options.defaults };
    this.#takesParts = this.#readsParts();
  }

  get source(): string {
    return this.#chatTemplate.source;
  }

  /** Whether content that came as a list of parts is given as one. */
  get takesParts(): boolean {
    return this.#takesParts;
  }

  /** The template's text. A conversation the template refuses is `invalid_request`, an image `unsupported`. */
  render(request: PromptRequest): string {
    for (const name of Object.keys(request.settings)) {
      if (!RESERVED.has(name)) continue;
      throw new VerbatimError("invalid_request", `The template setting ${name} is set by the conversation itself.`, {
        details: { field: `chat_template_kwargs.${name}`, reason: "reserved" },
      });
    }
    return this.#chatTemplate.render({
      ...this.#fixed,
      ...request.settings,
      messages: toTemplateMessages(request.messages, {
        takesParts: this.#takesParts,
        ...(request.earlierCalls === undefined ? {} : { earlierCalls: request.earlierCalls }),
      }),
      tools: toTemplateTools(request.tools),
      documents: null,
      add_generation_prompt: request.addGenerationPrompt,
    });
  }

  /** A template reads parts if it writes the texts of a list of parts one after the other, and nothing of their form. */
  #readsParts(): boolean {
    try {
      const text = this.#chatTemplate.render({
        ...this.#fixed,
        messages: [{ role: "user", content: [{ type: "text", text: "first" }, { type: "text", text: "second" }] }],
        tools: null,
        documents: null,
        add_generation_prompt: false,
      });
      return /first\s*second/.test(text);
    } catch {
      return false;
    }
  }
}
