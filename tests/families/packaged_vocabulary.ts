/**
 * Tokenizers of real models from the packages that carry their files. The packages stand in this folder's deno.json alone,
 * so that nothing else of the project fetches them.
 */

import type { HfTokenizerFiles } from "../../shared/adapters/tokenizer/hf_files.ts";
import { createHfTokenizer } from "../../shared/adapters/tokenizer/hf_tokenizer.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";

const tokenizers = new Map<string, Promise<Tokenizer>>();

/** The two files of a package, parsed. */
export async function packagedFiles(name: string): Promise<HfTokenizerFiles> {
  // Importing one file makes Deno fetch the package; the large one is read instead, so that no module holds it.
  const module = await import(`${name}/models/tokenizer_config.json`, { with: { type: "json" } });
  const url = new URL(import.meta.resolve(`${name}/models/tokenizer.json`));
  return { tokenizerJson: JSON.parse(await Deno.readTextFile(url)), tokenizerConfig: module.default };
}

/** The folder of a package's tokenizer files, as a file URL. */
export async function packagedFolder(name: string): Promise<string> {
  await import(`${name}/models/tokenizer_config.json`, { with: { type: "json" } });
  return new URL(".", import.meta.resolve(`${name}/models/tokenizer.json`)).href;
}

/** The tokenizer of a package, shared by all tests of the isolate. */
export function packagedTokenizer(name: string): Promise<Tokenizer> {
  let tokenizer = tokenizers.get(name);
  if (tokenizer === undefined) {
    tokenizer = packagedFiles(name).then((files) => createHfTokenizer(files, { worker: "none" }));
    tokenizers.set(name, tokenizer);
  }
  return tokenizer;
}
