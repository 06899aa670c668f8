/** The commands of docs/topologies.md, read as a shell would read them. It starts nothing. */

import configuration from "../../deno.json" with { type: "json" };

/** One command line: what is set for it, and the words of program and arguments. */
export interface DocumentedCommand {
  readonly environment: Readonly<Record<string, string>>;
  readonly words: readonly [string, ...string[]];
}

/** Where the documentation is. */
export const TOPOLOGIES = new URL("../../docs/topologies.md", import.meta.url);

const BLOCK = /^```sh start-(\S+)\n([^]*?)^```$/gm;
const WORD = /(?:[^\s'"]|'[^']*'|"[^"]*")+/g;
const ASSIGNMENT = /^([A-Z][A-Z0-9_]*)=([^]*)$/;

/** The blocks that start a topology, by the name behind `start-`, in the order they stand there. */
export function startBlocks(markdown: string): Map<string, string> {
  return new Map([...markdown.matchAll(BLOCK)].map(([, name = "", text = ""]) => [name, text]));
}

/** A block's command lines. A `#` begins a comment where it begins a word; a `\` at the end joins two lines. */
export function commandsOf(block: string): DocumentedCommand[] {
  const lines = block.replace(/\\\n/g, " ").split("\n").map((line) => line.replace(/(?:^|\s)#.*$/, "").trim());
  return lines.filter((line) => line !== "").map(command);
}

/** `deno task NAME` is what deno.json says it is: a test that kills a process must meet that process itself. */
function command(line: string): DocumentedCommand {
  const environment: Record<string, string> = {};
  const words = (line.match(WORD) ?? []).map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2"));
  for (let set = ASSIGNMENT.exec(words[0] ?? ""); set !== null; set = ASSIGNMENT.exec(words[0] ?? "")) {
    environment[set[1]!] = set[2]!;
    words.shift();
  }
  const [program, subcommand, task = "", ...rest] = words;
  if (program === undefined) throw new Error(`No program is started: ${line}`);
  if (program !== "deno" || subcommand !== "task") return { environment, words: [program, ...words.slice(1)] };
  const [first, ...more] = taskNamed(task).split(" ");
  return { environment, words: [first!, ...more, ...rest] };
}

function taskNamed(name: string): string {
  const tasks: Readonly<Record<string, { readonly command: string }>> = configuration.tasks;
  const task = tasks[name];
  if (task === undefined) throw new Error(`deno.json has no task ${name}`);
  return task.command;
}
