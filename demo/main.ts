/** The main job, whole: an agent works, every token is captured, a trainer reads the sample, and the promise is checked. */

import OpenAI from "openai";
import { join } from "node:path";
import { composeDevelopment } from "../shared/compose_development.ts";
import { serveGateway } from "../functions/serve_gateway.ts";
import { runAgent } from "./agent.ts";
import { checkPromise } from "./check_promise.ts";
import { DEMO_SCRIPT, JOB } from "./script.ts";
import { legendText, type ShownRegion, streamText, tableText } from "./show.ts";
import { Workshop } from "./workshop.ts";

const print = (line = "") => Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));

/** Two float32 logprobs of one token differ by rounding at most. */
const TOLERANCE = 1e-6;

/** Runs the demo; true where everything held. */
async function main(): Promise<boolean> {
  const colours = Deno.stdout.isTerminal() && !Deno.noColor;
  print("Starting an embedded engine and the gateway on loopback ...");
  const development = await composeDevelopment({
    engine: { script: DEMO_SCRIPT },
    environment: { LOG_LEVEL: "error" },
  });
  const gateway = serveGateway(development.services, { hostname: "127.0.0.1", port: 0 });
  const workshop = await Workshop.open();
  try {
    const admin = adminOf(gateway.url);
    const task = await admin("POST", "/tasks", { task_id: "demo", group_id: "demo-prompt" });
    print(`Gateway ${gateway.url}, engine ${development.served.url}, task "${task.task_id}"`);
    print(`\nThe agent (npm "openai") gets the job: ${JOB}`);
    const client = new OpenAI({ baseURL: String(task.base_url), apiKey: String(task.api_key) });
    print("The model is the embedded one: it follows a script for the job, and then says noise of its own.");
    await runAgent(client, JOB, workshop, (text) => print(`  ${text}`));
    const repaired = await workshop.isRepaired();
    const reward = repaired ? 1 : 0;
    print(`\nThe check ${repaired ? "passes" : "still fails"}: the task is finished with reward ${reward}.`);
    const finished = await admin("POST", "/tasks/demo/finish", { outcome: "completed", reward });
    const region = finished.result as ShownRegion | null;
    if (region === null) {
      print(`No sample: ${finished.reason}`);
      return false;
    }

    const { turns } = await admin("GET", "/tasks/demo/turns") as { turns: Record<string, unknown>[] };
    print("\nTurns");
    print(tableText(turns.map((turn) => ({
      "turn": Number(turn.turn),
      "relation": String(turn.relation),
      "echo": String(turn.echo ?? "-"),
      "finish": String(turn.finish_reason),
      "prompt": Number(turn.prompt_tokens),
      "cached": Number(turn.cached_tokens),
      "observed": Number(turn.observation_tokens),
      "sampled": Number(turn.completion_tokens),
      "weights": String((turn.weight_versions as { version: string }[])[0]?.version ?? "-"),
    }))));
    print(`\nTokens: ${legendText({ colours })}`);
    print(streamText(region, development.tokenizer, { colours }));

    const check = await checkPromise(region, development.services.models.default.engine);
    const held = check.tokens > 0 && check.largestDifference <= TOLERANCE;
    print(
      `\nThe promise: ${check.tokens} sampled tokens force-decoded after exactly their exported prefix, logprobs from ` +
        `${check.lowest.toFixed(2)} to ${check.highest.toFixed(2)}; ` +
        `largest difference ${check.largestDifference}: ${held ? "held" : "BROKEN"}`,
    );
    const path = join(Deno.cwd(), ".demo", "result.json");
    await Deno.mkdir(join(Deno.cwd(), ".demo"), { recursive: true });
    await Deno.writeTextFile(path, JSON.stringify(finished, null, 1));
    print(`The result is in ${path}`);
    return repaired && held;
  } finally {
    await workshop.close();
    await gateway.close();
    await development.close();
  }
}

/** A trainer's side: own endpoints, JSON in and out. */
function adminOf(url: string): (method: string, path: string, body?: unknown) => Promise<Record<string, unknown>> {
  return async (method, path, body) => {
    const response = await fetch(url + path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const json = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(json)}`);
    return json;
  };
}

if (!await main()) Deno.exit(1);
