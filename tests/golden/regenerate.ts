/**
 * Makes the golden files anew with Python's own libraries, in a virtual environment of their pinned versions, and prints
 * what changed. It needs python3 with venv, and the package registries the first time.
 */

const HERE = new URL(".", import.meta.url).pathname;
const FAMILIES = new URL("../families/", import.meta.url).pathname;
const CACHE = new URL("../../.cache/golden/", import.meta.url).pathname;

async function run(command: string, ...args: string[]): Promise<void> {
  const { success } = await new Deno.Command(command, { args, cwd: HERE, stdout: "inherit", stderr: "inherit" })
    .output();
  if (!success) Deno.exit(1);
}

/** The packages stand in the families' own configuration. */
async function packageFolders(): Promise<string> {
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--frozen", "--allow-all", "--config", `${FAMILIES}deno.json`, `${FAMILIES}print_folders.ts`],
    stderr: "inherit",
  }).output();
  if (!success) Deno.exit(1);
  return new TextDecoder().decode(stdout);
}

await Deno.mkdir(CACHE, { recursive: true });
await Deno.writeTextFile(`${CACHE}folders.json`, await packageFolders());
await run("python3", "-m", "venv", `${CACHE}venv`);
await run(`${CACHE}venv/bin/pip`, "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt");
await run(`${CACHE}venv/bin/python`, "make_golden.py", `${CACHE}folders.json`, ...Deno.args);
await run(Deno.execPath(), "fmt", "--quiet", "--config", "../families/deno.json", "encode", "rendered");
