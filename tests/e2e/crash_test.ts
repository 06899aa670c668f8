/**
 * The gateway is killed a hundred times at work, and nothing that was answered is lost: agents whose clients try again
 * go on where they were, and afterwards the record is what they were told.
 */

import assert from "node:assert/strict";
import { createHfTokenizer } from "../../shared/adapters/tokenizer/hf_tokenizer.ts";
import { loadTokenizerFiles } from "../../shared/adapters/tokenizer/load_tokenizer_files.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import { writeByteTokenizer } from "../fixtures/byte_tokenizer_folder.ts";
import { type Loopback, serveLoopback } from "../fixtures/loopback.ts";
import { type Random, seededRandom } from "../fixtures/seeded_random.ts";
import { checkPlay, newTotals, type Play, PLAY_SCRIPT, playTask, scoringEngine } from "./recorded_plays.ts";
import { RetryingClient, type Sight } from "./retrying_agent.ts";
import { freePort, ServerProcess } from "./server_process.ts";

const KILLS = 100;
const AGENTS = 8;
/** Of the agents, those whose first turn is too large for one atomic write. */
const LARGE_AGENTS = 1;
const LARGE_PROMPT = 160_000;
const CONTEXT = 400_000;
const SEED = 20_260_301;
/** A server that nothing happens to is killed after this long. */
const LONGEST_LIFE_MS = 2_500;
const DEADLINE_MS = 230_000;

/** What is told to whoever decides when to kill. */
type Moment = Sight | "sampled";

Deno.test(`${KILLS} kills at work lose nothing that was answered`, async () => {
  const folder = await Deno.makeTempDir();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  await writeByteTokenizer(folder);
  const tokenizer = createHfTokenizer(await loadTokenizerFiles(folder), { worker: "none" });
  const embedded = createEmbeddedEngine({
    tokenizer,
    modelName: "bytes",
    maxContextTokens: CONTEXT,
    incremental: true,
    script: PLAY_SCRIPT,
    random: seededRandom(SEED).unit,
    firstTokenDelayMs: 2,
    tokenDelayMs: 1,
  });
  const events = new EventTarget();
  const tell = (moment: Moment) => void events.dispatchEvent(new Event(moment));
  const engine = stack.use(serveEngine(embedded, () => tell("sampled")));
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  const start = () =>
    new ServerProcess({
      environment: {
        PORT: String(port),
        SGLANG_ROUTER_URL: engine.url,
        TOKENIZER: folder,
        MODEL_NAME: "bytes",
        MAX_CONTEXT_LEN: String(CONTEXT),
        STORE: "kv",
        KV_PATH: `${folder}/tasks.sqlite`,
        LOG_LEVEL: "info",
      },
    });

  const signal = AbortSignal.timeout(DEADLINE_MS);
  const client = new RetryingClient({ url: () => url, signal, onSight: tell });
  const stopWork = new AbortController();
  const agents = Array.from({ length: AGENTS }, (_, k) => agentLife(client, k, stopWork.signal));
  const working = Promise.all(agents);
  working.catch(() => {});

  const random = seededRandom(SEED);
  const errors: string[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const server = start();
    await Promise.race([untilDue(random, { server, events, signal }), working]);
    await server.end("SIGKILL");
    errors.push(...server.errors);
  }
  stopWork.abort();
  const server = stack.use(start());
  const plays = (await working).flat();

  const totals = newTotals();
  const scorer = scoringEngine(engine.url, tokenizer);
  for (const play of plays) await checkPlay(client, scorer, play, totals);
  // What the kills met: calls under way, and turns that were committed and not yet answered.
  assert.ok(plays.length > AGENTS, `${plays.length} tasks`);
  assert.ok(totals.retried > KILLS / 2, `${totals.retried} of ${totals.turns} requests met a kill`);
  assert.ok(totals.replayed > 0 && totals.sampled > 0, JSON.stringify(totals));
  await server.end("SIGTERM");
  assert.deepEqual([...errors, ...server.errors], [], "no life of the server logged an error");
  await checkKeys(`${folder}/tasks.sqlite`, plays);
});

/** Serves the engine, telling of each generation that it has answered whole. */
function serveEngine(engine: EmbeddedEngine, onSampled: () => void): Loopback {
  return serveLoopback(async (request) => {
    const response = await engine.app.fetch(request);
    if (new URL(request.url).pathname === "/generate") onSampled();
    return response;
  });
}

/** Resolves at the moment at which the server is to be killed: while it starts, after a while, or a moment after something happened. */
async function untilDue(
  random: Random,
  world: { readonly server: ServerProcess; readonly events: EventTarget; readonly signal: AbortSignal },
): Promise<void> {
  const kind = random.pick(["starting", "later", "frame", "finish", "ended", "sampled", "sampled", "ended"] as const);
  const afterMs = random.unit() * (kind === "starting" ? 400 : kind === "later" ? 500 : 6);
  const nth = 1 + random.integer(kind === "frame" ? 200 : kind === "sampled" ? 16 : 8);
  if (kind !== "starting") await world.server.listening;
  if (kind !== "starting" && kind !== "later") await untilNth(world.events, kind, nth);
  // Which write of a commit the kill meets is chance: the moment itself is what the seed decides.
  await new Promise((resolve) => setTimeout(resolve, afterMs));
}

async function untilNth(events: EventTarget, kind: Moment, nth: number): Promise<void> {
  const due = Promise.withResolvers<void>();
  let count = 0;
  const onEvent = () => {
    if (++count >= nth) due.resolve();
  };
  events.addEventListener(kind, onEvent);
  const timer = setTimeout(due.resolve, LONGEST_LIFE_MS);
  await due.promise;
  clearTimeout(timer);
  events.removeEventListener(kind, onEvent);
}

/** Plays one task after the other until it is told to stop. */
async function agentLife(client: RetryingClient, agent: number, stop: AbortSignal): Promise<Play[]> {
  const random = seededRandom(SEED + 1000 + agent);
  const plays: Play[] = [];
  while (!stop.aborted) {
    const id = `agent-${agent}-task-${plays.length}`;
    const system = agent < LARGE_AGENTS && plays.length % 2 === 0 ? "long ".repeat(LARGE_PROMPT / 5) : "Be an agent.";
    plays.push(await playTask(client, { id, system, turns: 3 + random.integer(8), random, stop }));
  }
  return plays;
}

/** The database holds each task's turns and none beyond. */
async function checkKeys(path: string, plays: readonly Play[]): Promise<void> {
  using kv = await Deno.openKv(path);
  let turns = 0;
  for await (const _entry of kv.list({ prefix: ["turn"] })) turns++;
  assert.equal(turns, plays.reduce((sum, { heard }) => sum + heard.length, 0));
}
