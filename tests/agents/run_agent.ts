/** One run of an agent: a private home, a cleared environment, a time limit, and nothing left running afterwards. */

import { dirname, join } from "node:path";
import type { Launch, Places } from "./coding_agent.ts";

const LIMIT_MS = 60_000;

/** How a run ended. */
export interface RunEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where the agent and its Node lie. */
export interface Programs {
  readonly folder: string;
  readonly node: string;
}

/** Runs it to its end. One that does not end within a minute is killed, and that is an error. */
export async function runAgent(launch: Launch, places: Places, programs: Programs): Promise<RunEnd> {
  const entry = join(programs.folder, launch.entry);
  const [program, args] = launch.runsOnNode ? [programs.node, [entry, ...launch.args]] : [entry, [...launch.args]];
  const child = new Deno.Command(program, {
    args,
    cwd: places.work,
    clearEnv: true,
    env: {
      HOME: places.home,
      TMPDIR: places.home,
      PATH: `${dirname(programs.node)}:/usr/local/bin:/usr/bin:/bin`,
      LANG: "C.UTF-8",
      ...launch.environment,
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    // A session of its own: what it starts can be ended with it.
    detached: true,
  }).spawn();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    killGroup(child.pid);
  }, LIMIT_MS);
  try {
    const { code, stdout, stderr } = await child.output();
    const text = new TextDecoder();
    const end = { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
    if (late) throw new Error(`It ran longer than ${LIMIT_MS} ms\n${end.stdout}\n${end.stderr}`);
    return end;
  } finally {
    clearTimeout(timer);
    killGroup(child.pid);
  }
}

function killGroup(leader: number): void {
  try {
    Deno.kill(-leader, "SIGKILL");
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
}
