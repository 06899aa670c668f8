/**
 * A chat template with what does not change between conversations: special tokens, defaults, how content is given. It
 * turns a conversation into the template's own text and knows nothing of tokens.
 */

import { VerbatimError } from "../core/errors.ts";
import type { Message, TemplateSettings, ToolCall, ToolDefinition } from "../core/message.ts";
import type { ChatTemplate } from "./chat_template.ts";
import { fromJson } from "./jinja/from_json.ts";
import { plain, type Text } from "./jinja/text.ts";
import { Dict, type Value } from "./jinja/values.ts";
import {
  type CallForm,
  REASONING_KEYS,
  type ReasoningKey,
  toTemplateMessages,
  toTemplateTools,
} from "./template_messages.ts";

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
  readonly earlierCalls?: readonly Pick<ToolCall, "id" | "name">[] | undefined;
}

/** Tried in this order; the first that a template writes out is the one. */
const CALL_FORMS: readonly [CallForm, ...CallForm[]] = [
  { argumentsAs: "object", noContentAs: "empty" },
  { argumentsAs: "text", noContentAs: "empty" },
  { argumentsAs: "object", noContentAs: "none" },
  { argumentsAs: "text", noContentAs: "none" },
];

/** Names that the conversation itself fills. */
const RESERVED = new Set(["messages", "tools", "documents", "add_generation_prompt"]);

export class PromptTemplate {
  readonly #chatTemplate: ChatTemplate;
  readonly #fixed: ReadonlyMap<string, Value>;
  readonly #takesParts: boolean;
  readonly #callForm: CallForm;
  readonly #reasoningAs: ReasoningKey;

  constructor(options: PromptTemplateOptions) {
    this.#chatTemplate = options.chatTemplate;
    const fixed = new Map<string, Value>(Object.entries(options.specialTokens));
    for (const [name, value] of Object.entries(options.defaults)) fixed.set(name, fromJson(value, true));
    this.#fixed = fixed;
    this.#reasoningAs = reasoningKeyOf(options.chatTemplate.source);
    this.#takesParts = this.#readsParts();
    this.#callForm = CALL_FORMS.find((form) => this.#writesCalls(form)) ?? CALL_FORMS[0];
  }

  /** The template's text. A conversation the template refuses is `invalid_request`, an image `unsupported`. */
  render(request: PromptRequest): Text {
    const variables = new Map(this.#fixed);
    for (const [name, value] of Object.entries(request.settings)) {
      if (RESERVED.has(name)) {
        throw new VerbatimError("invalid_request", `The template setting ${name} is set by the conversation itself.`, {
          details: { field: `chat_template_kwargs.${name}`, reason: "reserved" },
        });
      }
      variables.set(name, fromJson(value));
    }
    const { messages, earlierCalls } = request;
    variables.set(
      "messages",
      toTemplateMessages(messages, {
        takesParts: this.#takesParts,
        callForm: this.#callForm,
        reasoningAs: this.#reasoningAs,
        earlierCalls,
      }),
    );
    variables.set("tools", toTemplateTools(request.tools));
    variables.set("documents", null);
    variables.set("add_generation_prompt", request.addGenerationPrompt);
    return this.#chatTemplate.render(variables);
  }

  /** A template reads parts if it writes the texts of a list of parts one after the other, and nothing of their form. */
  #readsParts(): boolean {
    const part = (text: string) => new Dict(new Map<string, Value>([["type", "text"], ["text", text]]));
    const message = new Dict(
      new Map<string, Value>([["role", "user"], ["content", [part("first"), part("second")]]]),
    );
    return /first\s*second/.test(this.#attempt([message]) ?? "");
  }

  /** Whether a call in this form is written with its name and arguments. */
  #writesCalls(callForm: CallForm): boolean {
    const toolCalls = [{ id: "call00000", name: "probe_name", arguments: '{"probe_key": "probe_value"}' }];
    const messages: Message[] = [
      { role: "user", content: "?", source: -1 },
      { role: "assistant", content: "", reasoning: null, toolCalls, form: "", source: -1 },
    ];
    const text = this.#attempt(toTemplateMessages(messages, { takesParts: false, callForm })) ?? "";
    return ["probe_name", "probe_key", "probe_value"].every((word) => text.includes(word));
  }

  /** The text of messages without tools, or null where the template refuses them. */
  #attempt(messages: readonly Value[]): string | null {
    const variables = new Map(this.#fixed);
    variables.set("messages", messages);
    variables.set("tools", null);
    variables.set("documents", null);
    variables.set("add_generation_prompt", false);
    try {
      return plain(this.#chatTemplate.render(variables));
    } catch (error) {
      if (error instanceof VerbatimError) return null;
      throw error;
    }
  }
}

/** The first of the names that the template reads from anything; where it reads none, it makes no difference. */
function reasoningKeyOf(source: string): ReasoningKey {
  return REASONING_KEYS.find((key) => new RegExp(`(?:\\.|\\[\\s*['"])${key}\\b`).test(source)) ?? REASONING_KEYS[0];
}
