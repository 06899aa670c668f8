/** What is measured: a gateway as in production and a bare relay, each before the same engine. */

import { packagedTokenizerFolder } from "../../shared/adapters/tokenizer/packaged_tokenizer.ts";
import { Environment } from "../../shared/schemas/environment.ts";
import { type BenchProcess, startBenchProcess } from "./bench_process.ts";

/** An endpoint for agents. */
export interface BenchTarget {
  readonly name: "gateway" | "relay";
  readonly process: BenchProcess;
  /** Opens a task; the key its agent calls with. */
  openTask(): Promise<string>;
}

/** Both targets and their engine. */
export interface BenchTargets extends AsyncDisposable {
  readonly engine: BenchProcess;
  readonly gateway: BenchTarget;
  readonly relay: BenchTarget;
}

/** The longest prompts of the bench and a task's growth fit in. */
const CONTEXT_TOKENS = 262_144;

/** Starts everything; `folder` is for the databases. */
export async function startTargets(folder: string): Promise<BenchTargets> {
  await using stack = new AsyncDisposableStack();
  const engine = stack.use(await startNullEngine());
  const gateway = stack.use(await startGateway(engine.url, `${folder}/gateway.sqlite`));
  const relay = stack.use(
    await startBenchProcess({
      module: "tests/bench/bare_relay.ts",
      args: [engine.url, `${folder}/relay.sqlite`],
      says: "stdout",
      urlIn: (line) => line,
    }),
  );
  const owned = stack.move();
  return {
    engine,
    gateway: { name: "gateway", process: gateway, openTask: () => openGatewayTask(gateway.url) },
    relay: { name: "relay", process: relay, openTask: () => Promise.resolve("any") },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The engine that costs nothing. */
export function startNullEngine(): Promise<BenchProcess> {
  return startBenchProcess({ module: "tests/bench/null_engine.ts", says: "stdout", urlIn: (line) => line });
}

/** The gateway as `deno task serve` runs it. Nothing of the bench's own environment configures it. */
export async function startGateway(engineUrl: string, kvPath: string): Promise<BenchProcess> {
  const unset = Object.fromEntries(Object.keys(Environment.shape).map((name) => [name, ""]));
  return await startBenchProcess({
    module: "functions/main.ts",
    env: {
      ...unset,
      PORT: "0",
      SGLANG_ROUTER_URL: engineUrl,
      TOKENIZER: await packagedTokenizerFolder(),
      MAX_CONTEXT_LEN: String(CONTEXT_TOKENS),
      STORE: "kv",
      KV_PATH: kvPath,
    },
    says: "stderr",
    urlIn: (line) => /"message":"Verbatim is listening","url":"([^"]+)"/.exec(line)?.[1] ?? null,
  });
}

/** Opens a task of a gateway; its key. */
export async function openGatewayTask(url: string): Promise<string> {
  const task: { api_key: string } = await postJson(`${url}/tasks`, {});
  return task.api_key;
}

/** Posts JSON to an endpoint that must succeed. */
export async function postJson<Answer>(url: string, body: unknown): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text);
}
