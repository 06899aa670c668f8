/**
 * Makes the golden files anew with Python's own libraries, in a virtual environment of their pinned versions, and prints
 * what changed. It needs python3 with venv, and the package registries the first time.
 */

import vocabularies from "./vocabularies.json" with { type: "json" };
import { packagedFolder } from "../families/packaged_vocabulary.ts";

const HERE = new URL(".", import.meta.url).pathname;
const CACHE = new URL("../../.cache/golden/", import.meta.url).pathname;

async function run(command: string, ...args: string[]): Promise<void> {
  const { success } = await new Deno.Command(command, { args, cwd: HERE, stdout: "inherit", stderr: "inherit" })
    .output();
  if (!success) Deno.exit(1);
}

await Deno.mkdir(CACHE, { recursive: true });
const folders: Record<string, string> = {};
for (const name of vocabularies) folders[name] = new URL(await packagedFolder(name)).pathname;
await Deno.writeTextFile(`${CACHE}folders.json`, JSON.stringify(folders));
await run("python3", "-m", "venv", `${CACHE}venv`);
await run(`${CACHE}venv/bin/pip`, "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt");
await run(`${CACHE}venv/bin/python`, "make_golden.py", `${CACHE}folders.json`, ...Deno.args);
await run(Deno.execPath(), "fmt", "--quiet", "--config", "../families/deno.json", "encode", "rendered");
