/**
 * The files of a tokenizer from a folder, a URL or a model hub: what is configured becomes plain data. It does not read what
 * the files mean, but for the tokens that end a turn.
 */

import { VerbatimError } from "../../core/errors.ts";
import { type HfTokenizerFiles, isObject } from "./hf_files.ts";
import { loadHubFiles } from "./transformers_tokenizer.ts";

/** All that a model's folder tells about text and tokens. */
export interface TokenizerFiles extends HfTokenizerFiles {
  /** `chat_template.jinja` beside the tokenizer, which goes before the one in `tokenizer_config.json`; else null. */
  readonly chatTemplate: string | null;
  /** The tokens that end a turn by `generation_config.json`; empty without one. */
  readonly stopTokenIds: readonly number[];
}

export interface LoadTokenizerOptions {
  readonly signal?: AbortSignal;
  /** Loads by hub id. Default: through the transformers package, imported on first use. */
  readonly loadFromHub?: (id: string, options: { signal?: AbortSignal | undefined }) => Promise<TokenizerTexts>;
}

/** The files as they are: JSON text or values; null where there is none. */
export interface TokenizerTexts {
  readonly tokenizerJson: unknown;
  readonly tokenizerConfig: unknown;
  readonly chatTemplate: string | null;
  readonly generationConfig: unknown;
}

const HUB_ID = /^[A-Za-z0-9][\w.-]*(?:\/[A-Za-z0-9][\w.-]*)?$/;

/** `location` is an existing folder, an `http:`, `https:` or `file:` URL of a folder or of its tokenizer.json, or a hub id. */
export async function loadTokenizerFiles(
  location: string,
  options: LoadTokenizerOptions = {},
): Promise<TokenizerFiles> {
  const folder = await folderOf(location);
  if (folder !== null) return toFiles(await readFolder(folder, options.signal), location);
  if (!HUB_ID.test(location)) {
    throw new VerbatimError(
      "not_ready",
      `TOKENIZER ${location} is neither a folder that exists, nor a URL, nor a hub id.`,
    );
  }
  const load = options.loadFromHub ?? loadHubFiles;
  return toFiles(await load(location, { signal: options.signal }), location);
}

function toFiles(texts: TokenizerTexts, location: string): TokenizerFiles {
  const { tokenizerJson, tokenizerConfig, chatTemplate, generationConfig } = texts;
  return { tokenizerJson, tokenizerConfig, chatTemplate, stopTokenIds: stopTokenIds(generationConfig, location) };
}

/** `eos_token_id` is a number or a list of numbers. */
function stopTokenIds(generationConfig: unknown, location: string): number[] {
  if (!isObject(generationConfig)) return [];
  const found = generationConfig["eos_token_id"] ?? [];
  const ids: unknown[] = Array.isArray(found) ? found : [found];
  return ids.map((id) => {
    if (typeof id === "number" && Number.isSafeInteger(id) && id >= 0) return id;
    throw new VerbatimError(
      "not_ready",
      `generation_config.json of ${location} names ${
        JSON.stringify(id)
      } as an end-of-sequence token, which is no token id.`,
    );
  });
}

/** The folder as a URL that ends in a slash; null where the location is no folder. */
async function folderOf(location: string): Promise<URL | null> {
  if (/^(?:https?|file):\/\//.test(location)) {
    const url = new URL(location);
    if (url.pathname.endsWith(".json")) return new URL(".", url);
    if (!url.pathname.endsWith("/")) url.pathname += "/";
    return url;
  }
  try {
    const path = await Deno.realPath(location);
    if ((await Deno.stat(path)).isDirectory) return folderUrl(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return null;
}

function folderUrl(path: string): URL {
  const encoded = path.replaceAll("\\", "/").split("/").map((part) => encodeURIComponent(part)).join("/");
  return new URL(`file://${encoded.startsWith("/") ? "" : "/"}${encoded}/`);
}

async function readFolder(folder: URL, signal: AbortSignal | undefined): Promise<TokenizerTexts> {
  const read = (name: string) => readText(new URL(name + folder.search, folder), signal);
  const [tokenizerJson, tokenizerConfig, chatTemplate, generationConfig] = await Promise.all([
    read("tokenizer.json"),
    read("tokenizer_config.json"),
    read("chat_template.jinja"),
    read("generation_config.json"),
  ]);
  return {
    tokenizerJson: parsed(tokenizerJson, "tokenizer.json", folder),
    tokenizerConfig: parsed(tokenizerConfig, "tokenizer_config.json", folder),
    chatTemplate,
    generationConfig: generationConfig === null ? null : parsed(generationConfig, "generation_config.json", folder),
  };
}

function parsed(text: string | null, name: string, folder: URL): unknown {
  if (text === null) throw new VerbatimError("not_ready", `There is no ${name} in ${folder.href}.`);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new VerbatimError("not_ready", `${name} in ${folder.href} is not JSON.`, { cause });
  }
}

/** The text, or null where there is no such file. */
async function readText(url: URL, signal: AbortSignal | undefined): Promise<string | null> {
  if (url.protocol === "file:") {
    try {
      return await Deno.readTextFile(url, signal === undefined ? {} : { signal });
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }
  const response = await fetch(url, signal === undefined ? {} : { signal }).catch((cause: unknown) => {
    signal?.throwIfAborted();
    throw new VerbatimError("not_ready", `TOKENIZER ${url.href} can't be reached.`, { cause });
  });
  if (response.ok) return await response.text();
  await response.body?.cancel();
  if (response.status === 404) return null;
  throw new VerbatimError("not_ready", `${url.href} answers ${response.status} instead of the file.`);
}
