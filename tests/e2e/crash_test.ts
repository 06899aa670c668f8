/**
 * The gateway is killed a hundred times at work, and nothing that was answered is lost: agents whose clients try again
 * go on where they were, and afterwards the record is what they were told.
 */

import assert from "node:assert/strict";
import { createHfTokenizer } from "../../shared/adapters/hf_tokenizer.ts";
import { loadTokenizerFiles } from "../../shared/adapters/load_tokenizer_files.ts";
import { createSglangEngine } from "../../shared/adapters/sglang_engine.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { createTrackedBackground } from "../../shared/adapters/tracked_background.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import type { Script } from "../../shared/engine/script.ts";
import type { Engine } from "../../shared/ports/engine.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import { writeByteTokenizer } from "../fixtures/byte_tokenizer_folder.ts";
import { createListLogger } from "../fixtures/list_logger.ts";
import { type Loopback, serveLoopback } from "../fixtures/loopback.ts";
import { type Random, seededRandom } from "../fixtures/seeded_random.ts";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import type { Body } from "./harness.ts";
import { echoed, type Heard, RetryingClient, type Sight } from "./retrying_agent.ts";
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

const SCRIPT: Script = {
  rules: [{
    match: "use a tool",
    retrigger: true,
    sharpness: 9,
    completions: [
      '<think>\nhm\n</think>\n\nYes.\n<tool_call>\n{"name": "look", "arguments": {"n":  60.0}}\n</tool_call>',
    ],
  }],
};
const TOOLS = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
const TEXTS = ["use a tool", "Grüße, 世界 😀", "plain\n\nwords ", "", "<|im_end|> is a word here"];
const ALL_ROLES = "main,branch,side,superseded";

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
    script: SCRIPT,
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
  const client = new RetryingClient({ url, signal, onSight: tell });
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

  const totals: Totals = { turns: 0, retried: 0, replayed: 0, sampled: 0 };
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

function scoringEngine(url: string, tokenizer: Tokenizer): Engine {
  const logger = createListLogger();
  return createSglangEngine({
    url,
    vocabSize: tokenizer.vocabSize,
    retryMs: 1000,
    idleTimeoutMs: 60_000,
    clock: systemClock,
    logger,
    background: createTrackedBackground(logger),
    random: Math.random,
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

/** One task as its agent lived it. */
interface Play {
  readonly id: string;
  readonly history: "append_only" | "branch";
  readonly heard: readonly Heard[];
  /** What finishing it answered. */
  readonly finished: Body;
}

/** Plays one task after the other until it is told to stop; the last one is played to its end. */
async function agentLife(client: RetryingClient, agent: number, stop: AbortSignal): Promise<Play[]> {
  const random = seededRandom(SEED + 1000 + agent);
  const plays: Play[] = [];
  while (!stop.aborted) plays.push(await playTask(client, random, `agent-${agent}-task-${plays.length}`, stop));
  return plays;

  function isLarge(): boolean {
    return agent < LARGE_AGENTS && plays.length % 2 === 0;
  }

  async function playTask(client: RetryingClient, random: Random, id: string, stop: AbortSignal): Promise<Play> {
    const history = random.pick(["append_only", "append_only", "branch"] as const);
    const created = await client.admin("POST", "/tasks", { task_id: id, history, echo: "lenient" }, {
      "idempotency-key": id,
    });
    const messages: Body[] = [
      { role: "system", content: isLarge() ? "long ".repeat(LARGE_PROMPT / 5) : "You are an agent." },
      { role: "user", content: `Begin ${id}: use a tool.` },
    ];
    const heard: Heard[] = [];
    const turns = 3 + random.integer(8);
    while (heard.length < turns && (heard.length === 0 || !stop.aborted)) {
      const answer = await client.chat(created.api_key, {
        messages,
        tools: TOOLS,
        max_tokens: random.pick([4, 20, 70]),
        stream: random.chance(0.5),
        return_token_ids: true,
        logprobs: true,
      });
      heard.push(answer);
      messages.push(echoed(answer.message, random));
      for (const call of answer.message.tool_calls ?? []) {
        messages.push({ role: "tool", tool_call_id: call.id, content: random.pick(TEXTS) });
      }
      if (!answer.message.tool_calls || random.chance(0.2)) {
        messages.push({ role: "user", content: random.pick(TEXTS) });
      }
    }
    const finished = await client.admin("POST", `/tasks/${id}/finish`, { reward: heard.length });
    return { id, history, heard, finished };
  }
}

interface Totals {
  turns: number;
  /** Requests that were sent more than once. */
  retried: number;
  /** Answers that were given a second time. */
  replayed: number;
  /** Tokens found again. */
  sampled: number;
}

/** The record of a task is what its agent was told: no turn less, and none more. */
async function checkPlay(
  client: RetryingClient,
  engine: Engine,
  play: Play,
  totals: Totals,
): Promise<void> {
  const { id, heard } = play;
  const task = await client.admin("GET", `/tasks/${id}`);
  assert.deepEqual([task.status, task.turns, task.reward], ["finished", heard.length, heard.length], id);
  assert.deepEqual(heard.map(({ turn }) => turn), heard.map((_, k) => k), `${id}: each request made the next turn`);
  const { turns } = await client.admin("GET", `/tasks/${id}/turns`);
  assert.deepEqual(turns.map((turn: Body) => turn.parent), heard.map((_, k) => k === 0 ? null : k - 1), id);
  totals.replayed += turns.reduce((sum: number, turn: Body) => sum + turn.replays, 0);
  const { decisions } = await client.admin("GET", `/tasks/${id}/explain`);
  for (const { verdict } of decisions) assert.ok(verdict === "ok" || verdict === "replay", `${id}: ${verdict}`);

  const region = await client.admin("GET", `/tasks/${id}/result`);
  assert.deepEqual(region, play.finished, `${id}: the result is what finishing answered`);
  assert.equal(region.reason, null);
  const { rows } = await client.admin("GET", `/tasks/${id}/result?format=rows&roles=${ALL_ROLES}`);
  assert.equal(rows.length, 1);
  const [row] = rows;
  assert.deepEqual(row.path, heard.map(({ turn }) => turn));
  for (const [turn, told] of heard.entries()) {
    const { start, end } = row.turns[turn];
    const at = row.prompt_length + start;
    assert.deepEqual(row.tokens.slice(0, at), told.promptIds, `${id} turn ${turn}: prompt`);
    assert.deepEqual(row.tokens.slice(at, row.prompt_length + end), told.ids, `${id} turn ${turn}: ids`);
    assert.deepEqual(row.logprobs.slice(start, end), told.logprobs, `${id} turn ${turn}: logprobs`);
    totals.turns++;
    if (told.attempts > 1) totals.retried++;
  }
  totals.sampled += await checkRowsByForceDecoding(engine, rows);
}

/** The database holds each task's turns and none beyond. */
async function checkKeys(path: string, plays: readonly Play[]): Promise<void> {
  using kv = await Deno.openKv(path);
  let turns = 0;
  for await (const _entry of kv.list({ prefix: ["turn"] })) turns++;
  assert.equal(turns, plays.reduce((sum, { heard }) => sum + heard.length, 0));
}
