/** Starts a topology by the commands of docs/topologies.md: other ports and places, the same commands otherwise. */

import { Environment } from "../../shared/schemas/environment.ts";
import { commandsOf, type DocumentedCommand, startBlocks, TOPOLOGIES } from "./documented_commands.ts";
import { StartedProcess } from "./started_process.ts";

/** What stands in for what is documented. */
export interface TopologyOptions {
  /** Texts of the block and what the test has in their place: a database, a file. Each must stand in the block. */
  readonly places?: Readonly<Record<string, string>>;
  /** What runs the router, in the place of `python -m sglang_router.launch_router`. */
  readonly router?: readonly [string, ...string[]];
}

/** All its processes, running. */
export interface StartedTopology extends AsyncDisposable {
  /** Where that answers which the documentation has on this port. */
  url(documentedPort: number): string;
  /** Kills it. */
  kill(documentedPort: number): Promise<void>;
  /** What gateways wrote of errors. */
  errors(): string[];
}

const DEFAULT_PORT = "8787";
const PORT = /(?<=127\.0\.0\.1:|PORT=|port )\d{4,5}\b/g;
const ROUTER = "python -m sglang_router.launch_router ";

/** Starts every command of a block. One that names another's port waits until that one answers. */
export async function startTopology(name: string, options: TopologyOptions = {}): Promise<StartedTopology> {
  const documented = startBlocks(await Deno.readTextFile(TOPOLOGIES)).get(name);
  if (documented === undefined) throw new Error(`docs/topologies.md does not tell how ${name} is started`);
  const places = Object.entries(options.places ?? {});
  const marked = places.reduce(marking, documented);
  const ports = freePorts([...new Set([DEFAULT_PORT, ...marked.match(PORT) ?? []])]);
  const moved = marked.replace(PORT, (port) => String(ports.get(port)));
  const commands = commandsOf(places.reduce((text, [, place], k) => text.replaceAll(mark(k), () => place), moved));

  await using stack = new AsyncDisposableStack();
  const up = new Map<number, Promise<StartedProcess>>();
  for (const command of commands) {
    const port = portOf(command) ?? ports.get(DEFAULT_PORT)!;
    const before = [...up].filter(([other]) => namesPort(command, other)).map(([, process]) => process);
    up.set(
      port,
      Promise.all(before).then(async () => {
        const process = stack.use(new StartedProcess({ ...run(command, options), port }));
        await process.answers();
        return process;
      }),
    );
  }
  // All must have settled before anything is ended, or one would start after the end.
  const settled = await Promise.allSettled(up.values());
  for (const result of settled) if (result.status === "rejected") throw result.reason;
  const processes = await Promise.all(up.values());
  const owned = stack.move();

  function processOn(documentedPort: number): StartedProcess {
    const port = ports.get(String(documentedPort));
    const process = processes.find(({ url }) => url.endsWith(`:${port}`));
    if (process === undefined) throw new Error(`${name} has nothing on port ${documentedPort}`);
    return process;
  }
  return {
    url: (documentedPort) => processOn(documentedPort).url,
    kill: (documentedPort) => processOn(documentedPort).end(),
    errors: () => processes.flatMap(({ log }) => log.split("\n").filter((line) => line.includes('"level":"error"'))),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };

  function run(
    { environment, words }: DocumentedCommand,
    { router }: TopologyOptions,
  ): Omit<ConstructorParameters<typeof StartedProcess>[0], "port"> {
    if (`${words.join(" ")} `.startsWith(ROUTER)) {
      if (router === undefined) throw new Error(`${name} needs a router`);
      return { words: [...router, ...words.slice(3)], environment: {} };
    }
    // Nothing of the test's own environment configures it.
    const unset = Object.fromEntries(Object.keys(Environment.shape).map((variable) => [variable, ""]));
    const [program, ...args] = words;
    return {
      words: [program === "deno" ? Deno.execPath() : program, ...args],
      environment: { ...unset, PORT: String(ports.get(DEFAULT_PORT)), ...environment },
    };
  }
}

/** A place is marked before ports are exchanged, so that its own are left alone. */
function marking(block: string, [documented]: readonly [string, string], k: number): string {
  if (!block.includes(documented)) throw new Error(`${documented} does not stand in the documentation`);
  return block.replaceAll(documented, mark(k));
}

function mark(k: number): string {
  return `\0${k}\0`;
}

/** Where a command's process will listen, as the command says it. */
function portOf({ environment, words }: DocumentedCommand): number | null {
  const flag = words.indexOf("--port");
  const port = environment.PORT ?? (flag < 0 ? undefined : words[flag + 1]);
  return port === undefined ? null : Number(port);
}

function namesPort({ environment, words }: DocumentedCommand, port: number): boolean {
  return [...Object.values(environment), ...words].some((text) => text.includes(`:${port}`));
}

/** A free port for each of the documented ones, no two the same. */
function freePorts(documented: readonly string[]): Map<string, number> {
  const listeners = documented.map(() => Deno.listen({ hostname: "127.0.0.1", port: 0 }));
  const ports = new Map(documented.map((port, k) => [port, listeners[k]!.addr.port]));
  for (const listener of listeners) listener.close();
  return ports;
}
