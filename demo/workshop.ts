/** The job: a folder with a failing check, and the tools an agent may use in it. It knows nothing of models. */

import { join, relative, resolve } from "node:path";

const FILES: Readonly<Record<string, string>> = {
  "stats.mjs": `export function mean(values) {
  let sum = 0;
  for (let i = 1; i < values.length; i++) sum += values[i];
  return sum / values.length;
}
`,
  "check.mjs": `import { mean } from "./stats.mjs";

const cases = [[[2, 4, 9], 5], [[10], 10], [[1.5, 2.5], 2]];
for (const [values, expected] of cases) {
  const actual = mean(values);
  if (actual !== expected) {
    console.error(\`mean(\${JSON.stringify(values)}) is \${actual}, expected \${expected}\`);
    process.exit(1);
  }
}
console.log("all cases pass — été ✓");
`,
};

const RUN_TIMEOUT_MS = 30_000;

/** The tools, as the chat API wants them. */
export const TOOLS = [
  tool("list_files", "List the files in the folder.", {}),
  tool("read_file", "Read a file.", { path: "Path inside the folder" }),
  tool("write_file", "Write a file, replacing what was there.", {
    path: "Path inside the folder",
    content: "The whole text",
  }),
  tool("run", "Run a JavaScript file and return what it prints and its exit code.", { path: "Path inside the folder" }),
];

/** A fresh folder to work in. */
export class Workshop {
  /** Where it is. */
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Makes the folder and its files. */
  static async open(): Promise<Workshop> {
    const folder = await Deno.makeTempDir({ prefix: "verbatim-demo-" });
    for (const [name, text] of Object.entries(FILES)) await Deno.writeTextFile(join(folder, name), text);
    return new Workshop(folder);
  }

  /** Removes the folder. */
  async close(): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }

  /** Runs a tool. Whatever goes wrong is text for the model: it must see its own mistakes. */
  async call(name: string, args: Record<string, unknown>): Promise<string> {
    try {
      switch (name) {
        case "list_files":
          return (await Array.fromAsync(Deno.readDir(this.folder), (entry) => entry.name)).sort().join("\n");
        case "read_file":
          return await Deno.readTextFile(this.#path(args.path));
        case "write_file":
          await Deno.writeTextFile(this.#path(args.path), String(args.content));
          return "written";
        case "run":
          return await this.#run(this.#path(args.path));
        default:
          return `error: there is no tool "${name}"`;
      }
    } catch (cause) {
      return `error: ${cause instanceof Deno.errors.NotFound ? `no such file: ${args.path}` : String(cause)}`;
    }
  }

  /** Whether the job is done: the check passes. */
  async isRepaired(): Promise<boolean> {
    return (await this.#run(join(this.folder, "check.mjs"))).startsWith("exit code 0");
  }

  #path(path: unknown): string {
    const full = resolve(this.folder, String(path));
    if (relative(this.folder, full).startsWith("..")) throw new Error(`${String(path)} is outside the folder`);
    return full;
  }

  async #run(path: string): Promise<string> {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-config", "--no-lock", "--no-remote", "--no-npm", `--allow-read=${this.folder}`, path],
      cwd: this.folder,
      env: { NO_COLOR: "1" },
      signal: AbortSignal.timeout(RUN_TIMEOUT_MS),
    }).output();
    const decoder = new TextDecoder();
    return `exit code ${code}\n${decoder.decode(stdout)}${decoder.decode(stderr)}`.replaceAll(this.folder, ".")
      .trimEnd();
  }
}

function tool(name: string, description: string, fields: Readonly<Record<string, string>>): {
  type: "function";
  function: { name: string; description: string; parameters: Record<string, unknown> };
} {
  const properties = Object.fromEntries(
    Object.entries(fields).map(([field, about]) => [field, { type: "string", description: about }]),
  );
  return {
    type: "function",
    function: {
      name,
      description,
      parameters: { type: "object", properties, required: Object.keys(fields), additionalProperties: false },
    },
  };
}
