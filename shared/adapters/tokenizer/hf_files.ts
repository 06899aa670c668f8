/**
 * The two files of a Hugging Face tokenizer as plain data, and what they say: added tokens, special tokens, limits, the
 * template. It knows neither where the files come from nor how text is encoded.
 */

import { VerbatimError } from "../../core/errors.ts";

/** `tokenizer.json` and `tokenizer_config.json`, parsed. */
export interface HfTokenizerFiles {
  readonly tokenizerJson: unknown;
  readonly tokenizerConfig: unknown;
}

export type JsonObject = { readonly [key: string]: unknown };

/** A token that is matched in text before anything else. */
export interface HfAddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
  readonly normalized: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  readonly singleWord: boolean;
}

/** What both files say, checked. */
export interface HfDescription {
  readonly tokenizerJson: JsonObject;
  readonly tokenizerConfig: JsonObject;
  readonly model: JsonObject;
  /** Token text by id; holes are undefined. */
  readonly tokens: readonly (string | undefined)[];
  readonly addedTokens: readonly HfAddedToken[];
  readonly specialIds: ReadonlySet<number>;
  readonly specialTokens: Readonly<Record<string, string>>;
  readonly eosId: number | null;
  readonly chatTemplate: string | null;
  readonly modelMaxLength: number | null;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads the two files. Files that are no tokenizer are `invalid_request`. */
export function describeHfFiles(files: HfTokenizerFiles): HfDescription {
  const { tokenizerJson, tokenizerConfig } = files;
  if (!isObject(tokenizerJson) || !isObject(tokenizerJson["model"])) {
    throw new VerbatimError("invalid_request", "tokenizer.json is no tokenizer: it has no object named model.");
  }
  if (!isObject(tokenizerConfig)) {
    throw new VerbatimError("invalid_request", "tokenizer_config.json is not a JSON object.");
  }
  const model = tokenizerJson["model"];
  const tokens = vocabularyOf(model);
  const specialTokens = specialTokensOf(tokenizerConfig);
  const addedTokens = addedTokensOf(tokenizerJson, tokenizerConfig, new Set(Object.values(specialTokens)));
  for (const token of addedTokens) tokens[token.id] = token.content;
  const specialIds = new Set<number>();
  for (const token of addedTokens) if (token.special) specialIds.add(token.id);
  return {
    tokenizerJson: withAddedTokens(tokenizerJson, addedTokens),
    tokenizerConfig,
    model,
    tokens,
    addedTokens,
    specialIds,
    specialTokens,
    eosId: idOfToken(tokens, addedTokens, specialTokens["eos_token"]),
    chatTemplate: chatTemplateOf(tokenizerConfig["chat_template"]),
    modelMaxLength: lengthOf(tokenizerConfig["model_max_length"]),
  };
}

function vocabularyOf(model: JsonObject): (string | undefined)[] {
  const vocabulary = model["vocab"];
  const tokens: (string | undefined)[] = [];
  if (Array.isArray(vocabulary)) {
    // Unigram: a list of [text, score].
    for (const entry of vocabulary) {
      if (!Array.isArray(entry) || typeof entry[0] !== "string") throw badVocabulary(JSON.stringify(entry));
      tokens.push(entry[0]);
    }
    return tokens;
  }
  if (!isObject(vocabulary)) throw badVocabulary(typeof vocabulary);
  for (const text in vocabulary) {
    const id = vocabulary[text];
    if (!isId(id)) throw badVocabulary(`${JSON.stringify(text)}: ${JSON.stringify(id)}`);
    tokens[id] = text;
  }
  return tokens;
}

function badVocabulary(found: string): VerbatimError {
  return new VerbatimError("invalid_request", `tokenizer.json has no readable model.vocab: ${found}.`);
}

function isId(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value < 2 ** 31;
}

/**
 * The added tokens of tokenizer.json, then those that only tokenizer_config.json knows; a token is special if either file
 * says so or names it as one, as in `transformers`.
 */
function addedTokensOf(json: JsonObject, config: JsonObject, named: ReadonlySet<string>): HfAddedToken[] {
  const listed = Array.isArray(json["added_tokens"]) ? json["added_tokens"] : [];
  const additional = Array.isArray(config["additional_special_tokens"]) ? config["additional_special_tokens"] : [];
  const special = new Set(named);
  for (const token of additional) {
    const content = contentOf(token);
    if (content !== undefined) special.add(content);
  }
  const decoder = isObject(config["added_tokens_decoder"]) ? config["added_tokens_decoder"] : {};
  const configured = Object.entries(decoder).map(([id, token]) => addedToken(token, Number(id)));
  for (const token of configured) if (token.special) special.add(token.content);
  const byContent = new Map<string, HfAddedToken>();
  for (const entry of listed) {
    const token = addedToken(entry, isObject(entry) ? entry["id"] : undefined);
    byContent.set(token.content, token);
  }
  for (const token of configured) if (!byContent.has(token.content)) byContent.set(token.content, token);
  return [...byContent.values()]
    .map((token) => ({ ...token, special: token.special || special.has(token.content) }))
    .sort((a, b) => a.id - b.id);
}

function addedToken(entry: unknown, id: unknown): HfAddedToken {
  const content = contentOf(entry);
  if (!isObject(entry) || content === undefined || content === "" || !isId(id)) {
    throw new VerbatimError(
      "invalid_request",
      `The tokenizer lists an unreadable added token: ${JSON.stringify(entry)}.`,
    );
  }
  const special = entry["special"] === true;
  return {
    id,
    content,
    special,
    normalized: typeof entry["normalized"] === "boolean" ? entry["normalized"] : !special,
    lstrip: entry["lstrip"] === true,
    rstrip: entry["rstrip"] === true,
    singleWord: entry["single_word"] === true,
  };
}

function withAddedTokens(json: JsonObject, addedTokens: readonly HfAddedToken[]): JsonObject {
  const added_tokens = addedTokens.map(({ singleWord, ...token }) => ({ ...token, single_word: singleWord }));
  return { normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, ...json, added_tokens };
}

function contentOf(token: unknown): string | undefined {
  if (typeof token === "string") return token;
  return isObject(token) && typeof token["content"] === "string" ? token["content"] : undefined;
}

const SPECIAL_TOKEN_NAMES = [
  "bos_token",
  "eos_token",
  "unk_token",
  "sep_token",
  "pad_token",
  "cls_token",
  "mask_token",
];

function specialTokensOf(config: JsonObject): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const name of SPECIAL_TOKEN_NAMES) {
    const content = contentOf(config[name]);
    if (content !== undefined) tokens[name] = content;
  }
  return tokens;
}

function idOfToken(
  tokens: readonly (string | undefined)[],
  addedTokens: readonly HfAddedToken[],
  content: string | undefined,
): number | null {
  if (content === undefined) return null;
  const added = addedTokens.find((token) => token.content === content);
  if (added !== undefined) return added.id;
  const id = tokens.indexOf(content);
  return id < 0 ? null : id;
}

/** A template, or of a list of named templates the one named `default`. */
function chatTemplateOf(template: unknown): string | null {
  if (typeof template === "string") return template;
  if (!Array.isArray(template)) return null;
  for (const entry of template) {
    if (isObject(entry) && entry["name"] === "default" && typeof entry["template"] === "string") {
      return entry["template"];
    }
  }
  return null;
}

/** Configurations write "no limit" as a number near 1e30. */
function lengthOf(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 && value < 2 ** 31 ? value : null;
}
