/** The embedded engine as its own process, with its own tokenizer. The first line of its output is its URL. */

import { createHfTokenizer } from "../adapters/tokenizer/hf_tokenizer.ts";
import { loadTokenizerFiles } from "../adapters/tokenizer/load_tokenizer_files.ts";
import { packagedTokenizerFolder } from "../adapters/tokenizer/packaged_tokenizer.ts";
import { VerbatimError } from "../core/errors.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./embedded_engine.ts";
import { ENGINE_USAGE, type EngineFlags, parseEngineFlags } from "./engine_flags.ts";
import { serveEmbeddedEngine } from "./serve_embedded_engine.ts";

if (import.meta.main) await main(Deno.args);

async function main(args: readonly string[]): Promise<void> {
  try {
    const flags = parseEngineFlags(args);
    if (flags === null) return await write(Deno.stdout, ENGINE_USAGE);
    const served = serveEmbeddedEngine(await engineOf(flags), flags);
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      Deno.addSignalListener(signal, () => void served.close().then(() => Deno.exit(0)));
    }
    await write(Deno.stdout, `${served.url}\n`);
  } catch (error) {
    if (!(error instanceof VerbatimError)) throw error;
    await write(Deno.stderr, `${error.message}\n`);
    Deno.exitCode = 2;
  }
}

async function engineOf(flags: EngineFlags): Promise<EmbeddedEngine> {
  const tokenizerPath = flags.tokenizer ?? await packagedTokenizerFolder();
  const files = await loadTokenizerFiles(tokenizerPath);
  return createEmbeddedEngine({
    ...flags.engine,
    tokenizerPath,
    tokenizer: createHfTokenizer(files),
    ...(files.stopTokenIds.length > 0 ? { stopIds: files.stopTokenIds } : {}),
  });
}

async function write(stream: typeof Deno.stdout | typeof Deno.stderr, text: string): Promise<void> {
  const writer = stream.writable.getWriter();
  await writer.write(new TextEncoder().encode(text));
  writer.releaseLock();
}
