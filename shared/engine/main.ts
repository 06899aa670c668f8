/** The embedded engine as its own process. The first line of its output is its URL. */

import { composeEngine } from "../compose_engine.ts";
import { VerbatimError } from "../core/errors.ts";
import { ENGINE_USAGE, parseEngineFlags } from "./engine_flags.ts";
import { serveEmbeddedEngine } from "./serve_embedded_engine.ts";

if (import.meta.main) await main(Deno.args);

async function main(args: readonly string[]): Promise<void> {
  try {
    const flags = parseEngineFlags(args);
    if (flags === null) return await write(Deno.stdout, ENGINE_USAGE);
    const served = serveEmbeddedEngine(await composeEngine(flags), flags);
    await write(Deno.stdout, `${served.url}\n`);
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      Deno.addSignalListener(signal, () => void served.close().then(() => Deno.exit(0)));
    }
  } catch (error) {
    if (!(error instanceof VerbatimError)) throw error;
    await write(Deno.stderr, `${error.message}\n`);
    Deno.exitCode = 2;
  }
}

async function write(stream: typeof Deno.stdout | typeof Deno.stderr, text: string): Promise<void> {
  const writer = stream.writable.getWriter();
  await writer.write(new TextEncoder().encode(text));
  writer.releaseLock();
}
