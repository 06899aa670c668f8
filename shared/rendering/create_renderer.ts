/**
 * The renderer of one model: tokenizer, chat template, family and parsers bound together and tried out before first use. It
 * knows neither engines nor tasks.
 */

import { VerbatimError } from "../core/errors.ts";
import type { TemplateSettings } from "../core/message.ts";
import type { Renderer } from "../ports/renderer.ts";
import type { Tokenizer } from "../ports/tokenizer.ts";
import { compileChatTemplate } from "./chat_template.ts";
import { checkRenderer, type RendererCheck } from "./check_renderer.ts";
import { findControlTokens } from "./control_tokens.ts";
import { ConversationText } from "./conversation_text.ts";
import { createCompletionParser } from "./create_completion_parser.ts";
import { detectParsers } from "./detect_parsers.ts";
import type { Family } from "./families/family.ts";
import { findFamily } from "./families/find_family.ts";
import { Increment } from "./increment.ts";
import { type CreateParser, ModelRenderer } from "./model_renderer.ts";
import { PromptTemplate } from "./prompt_template.ts";

export interface RendererOptions {
  readonly tokenizer: Tokenizer;
  /** Default: the tokenizer's own. */
  readonly chatTemplate?: string;
  /** A family's name; `auto` (default) finds it by the parsers. */
  readonly family?: string;
  /** A parser's name, null for none; `auto` (default) finds it by template and vocabulary. */
  readonly toolCallParser?: string | null;
  readonly reasoningParser?: string | null;
  /** More tokens that end a turn, as `generation_config.json` names them. */
  readonly stopTokenIds?: readonly number[];
  /** Template settings that hold where a conversation has none of that name. */
  readonly templateDefaults?: TemplateSettings;
  /** Whether control tokens that messages or tools write count as such. Default false: they are plain text. */
  readonly trustSpecialTokens?: boolean;
  /** Default: this project's own parsers. */
  readonly createParser?: CreateParser;
  /** Milliseconds since the epoch, for templates that write the date. Default: the system's clock. */
  readonly now?: () => number;
}

/** What was found of a model, and its renderer if every check passed. */
export interface ExaminedModel {
  readonly family: string;
  readonly toolCallParser: string | null;
  readonly reasoningParser: string | null;
  readonly checks: readonly RendererCheck[];
  /** Null where a check failed. */
  readonly renderer: Renderer | null;
  /** What to do about a template that fails, where something can be done. */
  readonly hint: string | null;
}

/** Makes a renderer. One that fails its checks is refused: `not_ready`, with the reasons. */
export function createRenderer(options: RendererOptions): Renderer {
  const { renderer, family, checks, hint } = examineModel(options);
  if (renderer !== null) return renderer;
  const failed = checks.filter((check) => !check.passed);
  const reasons = failed.map((check) => `${check.name}: ${check.reason ?? ""}`).join("\n");
  throw new VerbatimError(
    "not_ready",
    `The chat template of family ${family} fails its checks:\n${reasons}${hint === null ? "" : `\n${hint}`}`,
    { details: { failed: failed.map((check) => check.name) } },
  );
}

/** Finds a model's parts and tries its template out. What keeps a template from being tried at all is `not_ready`. */
export function examineModel(options: RendererOptions): ExaminedModel {
  const { tokenizer } = options;
  const source = options.chatTemplate ?? tokenizer.chatTemplate;
  if (source === null) {
    throw new VerbatimError(
      "not_ready",
      "The model has no chat template: neither its tokenizer nor CHAT_TEMPLATE has one.",
    );
  }
  const prompt = new PromptTemplate({
    chatTemplate: compileChatTemplate(source, { now: options.now ?? Date.now }),
    specialTokens: tokenizer.specialTokens,
    defaults: options.templateDefaults ?? {},
  });
  const detected = detectParsers({ chatTemplate: source, addedTokens: tokenizer.addedTokens.keys() });
  const toolCallParser = chosen(options.toolCallParser, detected.toolCallParser);
  const reasoningParser = chosen(options.reasoningParser, detected.reasoningParser);
  const family = findFamily(options.family ?? "auto", { toolCallParser, reasoningParser });
  const createParser = options.createParser ?? createCompletionParser;
  mustParse(createParser, { toolCallParser, reasoningParser });
  const closing = closingToken(prompt, tokenizer);
  const stopTokenIds = stopTokens(tokenizer, closing, options.stopTokenIds ?? [], family);
  const text = new ConversationText({
    prompt,
    stopTexts: stopTokenIds.map((id) => tokenizer.decode([id])),
    closedBy: family.closedBy,
  });
  const callId = (index: number) =>
    family.callId({ name: "look_up", priorCalls: index, random: (digits) => padded(index, digits) });
  const checks = checkRenderer({
    text,
    tokenizer,
    closesTurns: closing !== null,
    makesCalls: toolCallParser !== null,
    callsInParallel: family.callsInParallel,
    callId,
  });
  const found = { family: family.name, toolCallParser, reasoningParser, checks, hint: family.templateHint ?? null };
  if (checks.some((check) => !check.passed)) return { ...found, renderer: null };
  const renderer = new ModelRenderer({
    family,
    toolCallParser,
    reasoningParser,
    tokenizer,
    stopTokenIds,
    checks,
    text,
    createParser,
    controlTokens: options.trustSpecialTokens === true
      ? null
      : findControlTokens({ source, tokenizer, text, callId: callId(0) }),
  });
  return { ...found, renderer };
}

function chosen(asked: string | null | undefined, detected: string | null): string | null {
  return asked === undefined || asked === "auto" ? detected : asked;
}

/** Names without a parser stop the start, not the first completion. */
function mustParse(
  createParser: CreateParser,
  parsers: { readonly toolCallParser: string | null; readonly reasoningParser: string | null },
): void {
  try {
    createParser({ ...parsers, tools: [], toolChoice: "auto", opensReasoning: false });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new VerbatimError("not_ready", `The parsers that are configured can't be had: ${reason}`, { cause: error });
  }
}

/** The token with which the template's closer begins; null where it writes none after a reply. */
function closingToken(prompt: PromptTemplate, tokenizer: Tokenizer): number | null {
  const closer = closerOf(prompt);
  let longest = "";
  for (const text of tokenizer.addedTokens.keys()) {
    if (text.length > longest.length && closer.startsWith(text)) longest = text;
  }
  return tokenizer.addedTokens.get(longest) ?? null;
}

function closerOf(prompt: PromptTemplate): string {
  try {
    return new Increment(prompt, { stopTexts: [] }).closer({ tools: [], settings: {} });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new VerbatimError("not_ready", `The chat template does not render the simplest conversation: ${reason}`, {
      cause: error,
    });
  }
}

/** The template's closer first, then the family's, the configured and the tokenizer's own, each once. */
function stopTokens(
  tokenizer: Tokenizer,
  closing: number | null,
  configured: readonly number[],
  family: Family,
): number[] {
  const ids = new Set<number>();
  if (closing !== null) ids.add(closing);
  for (const text of [...family.closedBy.keys(), ...family.stopTokens]) {
    const id = tokenizer.addedTokens.get(text);
    if (id !== undefined) ids.add(id);
  }
  for (const id of configured) {
    if (!Number.isInteger(id) || id < 0 || id >= tokenizer.vocabSize) {
      throw new VerbatimError(
        "not_ready",
        `Stop token ${id} is not in the vocabulary of ${tokenizer.vocabSize} tokens.`,
      );
    }
    ids.add(id);
  }
  if (tokenizer.eosId !== null) ids.add(tokenizer.eosId);
  if (ids.size === 0) {
    throw new VerbatimError("not_ready", "No token is known that ends a turn: neither template nor files name one.");
  }
  return [...ids];
}

function padded(index: number, digits: number): string {
  return index.toString(16).padStart(digits, "0");
}
