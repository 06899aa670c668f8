/**
 * Encoding per vocabulary, beside Hugging Face's own (Rust) tokenizers on the same texts, in bytes a second of processor
 * time (what else the machine does counts little), and parsing per format: Markdown tables on standard output. The Rust
 * column wants the virtual environment that `deno task golden` makes.
 */

import process from "node:process";
import { createHfTokenizer } from "../../shared/adapters/tokenizer/hf_tokenizer.ts";
import vocabularies from "../golden/vocabularies.json" with { type: "json" };
import { type Corpus, encodeCorpora } from "./encode_corpus.ts";
import { packagedFiles, packagedFolder } from "./packaged_vocabulary.ts";
import { parserSpeeds } from "./parser_speeds.ts";

const CACHE = new URL("../../.cache/golden/", import.meta.url).pathname;
const SCRIPT = new URL("../golden/encode_speed.py", import.meta.url).pathname;

/** The best of so many counts, since the machine has other things to do. */
const ROUNDS = 3;

const corpora = await encodeCorpora();
const rust = await rustSeconds(corpora);
print("| vocabulary | text | Verbatim, first time | Verbatim, seen before | Rust tokenizers |");
print("| --- | --- | --: | --: | --: |");
for (const name of vocabularies) {
  const files = await packagedFiles(name);
  for (const corpus of corpora) {
    let [first, again] = [Infinity, Infinity];
    for (let round = 0; round < ROUNDS; round++) {
      // A fresh tokenizer each: what a round leaves in its caches does not help the next.
      const tokenizer = createHfTokenizer(files, { worker: "none" });
      tokenizer.encode("warm up ".repeat(2000));
      first = Math.min(first, time(corpus, (piece) => tokenizer.encode(piece)));
      again = Math.min(again, time(corpus, (piece) => tokenizer.encode(piece)));
    }
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
  const start = process.cpuUsage();
  for (const piece of pieces) encode(piece);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
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
