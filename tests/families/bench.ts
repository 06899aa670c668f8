/**
 * Encoding per vocabulary, beside Hugging Face's own (Rust) tokenizers on the same texts and one core, and parsing per
 * format: Markdown tables on standard output. The Rust column wants the virtual environment that `deno task golden` makes.
 */

import { createHfTokenizer } from "../../shared/adapters/hf_tokenizer.ts";
import vocabularies from "../golden/vocabularies.json" with { type: "json" };
import { type Corpus, encodeCorpora } from "./encode_corpus.ts";
import { packagedFiles, packagedFolder } from "./packaged_vocabulary.ts";
import { parserSpeeds } from "./parser_speeds.ts";

const CACHE = new URL("../../.cache/golden/", import.meta.url).pathname;
const SCRIPT = new URL("../golden/encode_speed.py", import.meta.url).pathname;

const corpora = await encodeCorpora();
const rust = await rustSeconds(corpora);
print("| vocabulary | text | Verbatim, first time | Verbatim, seen before | Rust tokenizers |");
print("| --- | --- | --: | --: | --: |");
for (const name of vocabularies) {
  for (const corpus of corpora) {
    // One tokenizer a corpus: what one corpus leaves in its caches does not help the other.
    const tokenizer = createHfTokenizer(await packagedFiles(name), { worker: "none" });
    tokenizer.encode("warm up ".repeat(2000));
    const first = time(corpus, (piece) => tokenizer.encode(piece));
    const again = time(corpus, (piece) => tokenizer.encode(piece));
    const theirs = rust?.[name]?.[corpus.name];
    print(
      `| ${name} | ${corpus.name} | ${speed(corpus, first)} | ${speed(corpus, again)} | ${
        theirs === undefined ? "not measured" : speed(corpus, theirs)
      } |`,
    );
  }
}
print("\n| parser | prose | code |");
print("| --- | --: | --: |");
for (const { name, prose, code } of parserSpeeds()) {
  print(`| ${name} | ${Math.round(prose)} MB/s | ${Math.round(code)} MB/s |`);
}

function time({ pieces }: Corpus, encode: (piece: string) => unknown): number {
  const start = performance.now();
  for (const piece of pieces) encode(piece);
  return (performance.now() - start) / 1000;
}

function speed({ bytes }: Corpus, seconds: number): string {
  return `${(bytes / 1e6 / seconds).toFixed(1)} MB/s`;
}

/** Seconds by vocabulary and corpus, or null without the environment. */
async function rustSeconds(texts: readonly Corpus[]): Promise<Record<string, Record<string, number>> | null> {
  const folders: Record<string, string> = {};
  for (const name of vocabularies) folders[name] = new URL(await packagedFolder(name)).pathname;
  const request = `${CACHE}bench.json`;
  await Deno.mkdir(CACHE, { recursive: true });
  const pieces = Object.fromEntries(texts.map(({ name, pieces }) => [name, pieces]));
  await Deno.writeTextFile(request, JSON.stringify({ folders, corpora: pieces }));
  try {
    const { success, stdout } = await new Deno.Command(`${CACHE}venv/bin/python`, { args: [SCRIPT, request] }).output();
    return success ? JSON.parse(new TextDecoder().decode(stdout)) : null;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
