/**
 * Tokenizer files by hub id, through the transformers package and its cache. The package is large and has native parts, so
 * it is imported on first use by a name that no bundler sees. It yields files; the tokenizer made of them is the same as any.
 */

import { VerbatimError } from "../../core/errors.ts";
import { isObject, type JsonObject } from "./hf_files.ts";
import type { TokenizerTexts } from "./load_tokenizer_files.ts";

export interface HubOptions {
  readonly signal?: AbortSignal | undefined;
  /** Imports the package. */
  readonly importTransformers?: () => Promise<unknown>;
  readonly fetch?: typeof fetch;
}

/** Loads a model's tokenizer files. A model that can't be had is `not_ready`. */
export async function loadHubFiles(id: string, options: HubOptions = {}): Promise<TokenizerTexts> {
  const transformers = await (options.importTransformers ?? importTransformers)().catch((cause: unknown) => {
    throw new VerbatimError(
      "not_ready",
      `The tokenizer ${id} is named by hub id, and the transformers package can't be imported: set TOKENIZER to a folder.`,
      { cause },
    );
  });
  options.signal?.throwIfAborted();
  const tokenizer = await fromPretrained(transformers, id);
  const file = (name: string) => hubFile(transformers, `${id}/${name}`, { id, name, ...options });
  const [chatTemplate, generationConfig] = await Promise.all([
    file("chat_template.jinja"),
    file("generation_config.json"),
  ]);
  return {
    tokenizerJson: tokenizer["_tokenizerJSON"],
    tokenizerConfig: tokenizer["_tokenizerConfig"],
    chatTemplate,
    generationConfig: generationConfig === null ? null : parsed(generationConfig, id),
  };
}

function parsed(text: string, id: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new VerbatimError("not_ready", `generation_config.json of ${id} is not JSON.`, { cause });
  }
}

/** The one version that is used. Not in deno.json: `deno task` fetches whatever stands there, and this is half a gigabyte. */
const TRANSFORMERS = { scope: "npm:@huggingface", name: "transformers@4.3.2" };

/** Neither the start nor a bundle finds the package through this name. */
function importTransformers(): Promise<unknown> {
  const specifier = `${TRANSFORMERS.scope}/${TRANSFORMERS.name}`;
  return import(specifier);
}

async function fromPretrained(transformers: unknown, id: string): Promise<JsonObject> {
  const loader = isObject(transformers) ? transformers["AutoTokenizer"] : undefined;
  const load = hasMember(loader, "from_pretrained") ? loader["from_pretrained"] : undefined;
  if (typeof load !== "function") {
    throw new VerbatimError("not_ready", "The transformers package has no AutoTokenizer: another version is needed.");
  }
  let tokenizer: unknown;
  try {
    tokenizer = await load.call(loader, id);
  } catch (cause) {
    throw new VerbatimError("not_ready", `The tokenizer ${id} can't be loaded from the hub.`, { cause });
  }
  if (hasMember(tokenizer, "_tokenizerJSON") && hasMember(tokenizer, "_tokenizerConfig")) return tokenizer;
  throw new VerbatimError("not_ready", "The transformers package keeps no tokenizer files: another version is needed.");
}

/** A file that the package itself does not load, from where it loads the others; null where the model has none. */
async function hubFile(
  transformers: unknown,
  label: string,
  options: HubOptions & { readonly id: string; readonly name: string },
): Promise<string | null> {
  const settings = isObject(transformers) ? transformers["env"] : undefined;
  const host = hasMember(settings, "remoteHost") ? settings["remoteHost"] : undefined;
  const path = hasMember(settings, "remotePathTemplate") ? settings["remotePathTemplate"] : undefined;
  if (typeof host !== "string" || typeof path !== "string") {
    throw new VerbatimError(
      "not_ready",
      "The transformers package does not say where its hub is: another version is needed.",
    );
  }
  const folder = path.replaceAll("{model}", options.id).replaceAll("{revision}", "main").replace(/\/?$/, "/");
  const url = new URL(folder + options.name, host);
  const response = await (options.fetch ?? fetch)(url, options.signal === undefined ? {} : { signal: options.signal });
  if (response.ok) return await response.text();
  await response.body?.cancel();
  if (response.status === 404) return null;
  throw new VerbatimError("not_ready", `The hub answers ${response.status} instead of ${label}.`);
}

/** Instances and functions have members as well as plain objects. */
function hasMember<Name extends string>(value: unknown, name: Name): value is JsonObject & Record<Name, unknown> {
  return (typeof value === "object" || typeof value === "function") && value !== null && name in value;
}
