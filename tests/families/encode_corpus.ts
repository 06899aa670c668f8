/** Text to measure encoding on: the project's own code, prose, and many scripts, in pieces as long as messages. */

import { randomChunk } from "../golden/random_texts.ts";

const PIECE = 4000;
const ROOT = new URL("../../", import.meta.url);

/** A kind of text, cut into pieces that are all different. */
export interface Corpus {
  readonly name: string;
  readonly pieces: readonly string[];
  readonly bytes: number;
}

/** The corpora. */
export async function encodeCorpora(): Promise<Corpus[]> {
  let code = "";
  for await (const path of sources(new URL("shared/", ROOT))) code += await Deno.readTextFile(path);
  let scripts = "";
  for (let chunk = 1000; scripts.length < 400_000; chunk++) scripts += randomChunk(chunk, ["<"]).join("\n");
  return [corpus("code", code.slice(0, 1_200_000)), corpus("mixed scripts", scripts)];
}

function corpus(name: string, text: string): Corpus {
  const pieces: string[] = [];
  const whole = text.toWellFormed();
  for (let at = 0; at < whole.length; at += PIECE) pieces.push(whole.slice(at, at + PIECE).toWellFormed());
  const bytes = pieces.reduce((sum, piece) => sum + new TextEncoder().encode(piece).length, 0);
  return { name, pieces, bytes };
}

async function* sources(folder: URL): AsyncGenerator<URL> {
  const entries = (await Array.fromAsync(Deno.readDir(folder))).sort((a, b) => a.name < b.name ? -1 : 1);
  for (const entry of entries) {
    if (entry.isDirectory) yield* sources(new URL(`${entry.name}/`, folder));
    else if (entry.name.endsWith(".ts")) yield new URL(entry.name, folder);
  }
}
