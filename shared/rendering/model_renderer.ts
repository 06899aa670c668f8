/** A renderer whose parts are found and tried out: conversations and increments as token ids. It checks nothing itself. */

import type { Conversation } from "../core/message.ts";
import type { CompletionParser } from "../ports/completion_parser.ts";
import type { ParserRequest, Rendered, Renderer, RenderIncrement } from "../ports/renderer.ts";
import type { EncodeOptions, Tokenizer } from "../ports/tokenizer.ts";
import type { RendererCheck } from "./check_renderer.ts";
import type { ControlTokens } from "./control_tokens.ts";
import type { ConversationText } from "./conversation_text.ts";
import type { CallToName, Family } from "./families/family.ts";
import { plain, spansOf, type Text, unsaidSpansOf } from "./jinja/text.ts";
import { opensReasoning } from "./reasoning_markers.ts";

/** Makes the parser of one completion. */
export type CreateParser = (
  options: ParserRequest & { readonly toolCallParser: string | null; readonly reasoningParser: string | null },
) => CompletionParser;

export interface ModelRendererParts {
  readonly family: Family;
  readonly toolCallParser: string | null;
  readonly reasoningParser: string | null;
  readonly tokenizer: Tokenizer;
  readonly stopTokenIds: readonly number[];
  readonly checks: readonly RendererCheck[];
  readonly text: ConversationText;
  readonly createParser: CreateParser;
  /** Null: what messages write counts as the tokens it looks like. */
  readonly controlTokens: ControlTokens | null;
}

export class ModelRenderer implements Renderer {
  readonly #family: Family;
  readonly #text: ConversationText;
  readonly #createParser: CreateParser;
  readonly #controlTokens: ControlTokens | null;
  readonly toolCallParser: string | null;
  readonly reasoningParser: string | null;
  readonly tokenizer: Tokenizer;
  readonly stopTokenIds: readonly number[];
  readonly checks: readonly RendererCheck[];

  constructor(parts: ModelRendererParts) {
    this.#family = parts.family;
    this.#text = parts.text;
    this.#createParser = parts.createParser;
    this.#controlTokens = parts.controlTokens;
    this.toolCallParser = parts.toolCallParser;
    this.reasoningParser = parts.reasoningParser;
    this.tokenizer = parts.tokenizer;
    this.stopTokenIds = parts.stopTokenIds;
    this.checks = parts.checks;
  }

  get family(): string {
    return this.#family.name;
  }

  renderPrompt(
    conversation: Conversation,
    options: { addGenerationPrompt?: boolean; signal?: AbortSignal } = {},
  ): Promise<Rendered> {
    const addGenerationPrompt = options.addGenerationPrompt ?? true;
    return this.#rendered(() => this.#text.promptText(conversation, addGenerationPrompt), options.signal, {
      endsInGenerationPrompt: addGenerationPrompt,
    });
  }

  renderIncrement(increment: RenderIncrement, options: { signal?: AbortSignal } = {}): Promise<Rendered> {
    const { appended, tools, settings, lastToken } = increment;
    const ended = lastToken !== null && this.stopTokenIds.includes(lastToken);
    const lastText = ended ? this.tokenizer.decode([lastToken]) : null;
    const request = { appended, tools, settings, calls: increment.calls ?? [] };
    return this.#rendered(() => this.#text.incrementText(request, lastText), options.signal, {
      endsInGenerationPrompt: true,
    });
  }

  keepsReasoning(conversation: Conversation, assistants: readonly number[]): boolean {
    return this.#text.keepsReasoning(conversation, assistants);
  }

  parser(request: ParserRequest): CompletionParser {
    const { toolCallParser, reasoningParser } = this;
    return this.#createParser({ ...request, toolCallParser, reasoningParser });
  }

  callId(call: CallToName): string {
    return this.#family.callId(call);
  }

  async #rendered(
    render: () => Text,
    signal: AbortSignal | undefined,
    { endsInGenerationPrompt }: { endsInGenerationPrompt: boolean },
  ): Promise<Rendered> {
    signal?.throwIfAborted();
    const text = render();
    const ids = await this.tokenizer.encodeAsync(plain(text), {
      addSpecialTokens: false,
      ...this.#plainText(text),
      ...(signal === undefined ? {} : { signal }),
    });
    return { ids, opensReasoning: endsInGenerationPrompt && opensReasoning(plain(text), this.reasoningParser) };
  }

  /** Which stretches hold no control tokens, whatever they say. */
  #plainText(text: Text): Pick<EncodeOptions, "plainSpans" | "guards"> {
    if (this.#controlTokens === null) return {};
    const { framing, written } = this.#controlTokens;
    const plainSpans = spansOf(text);
    return { plainSpans, guards: [{ ids: framing, spans: plainSpans }, { ids: written, spans: unsaidSpansOf(text) }] };
  }
}
