/** Two gateway processes on one store: requests go to either, one of them is killed now and then, and nothing is lost. */

import assert from "node:assert/strict";
import { createHfTokenizer } from "../../shared/adapters/tokenizer/hf_tokenizer.ts";
import { loadTokenizerFiles } from "../../shared/adapters/tokenizer/load_tokenizer_files.ts";
import { createEmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import { serveEmbeddedEngine } from "../../shared/engine/serve_embedded_engine.ts";
import { testOnPostgres } from "../contracts/postgres_harness.ts";
import { writeByteTokenizer } from "../fixtures/byte_tokenizer_folder.ts";
import { seededRandom } from "../fixtures/seeded_random.ts";
import { checkPlay, newTotals, PLAY_SCRIPT, playTask, scoringEngine } from "./recorded_plays.ts";
import { RetryingClient } from "./retrying_agent.ts";
import { freePort, ServerProcess, type ServerProcessOptions } from "./server_process.ts";

const AGENTS = 6;
const TASKS = 4;
const KILLS = 4;
const SEED = 77;
const CONTEXT = 131_072;
const DEADLINE_MS = 90_000;

/** Runs the processes on a store; `storeOf` tells their environment, given a folder of their own. */
async function loseNothing(storeOf: (folder: string) => ServerProcessOptions["environment"]): Promise<void> {
  const folder = await Deno.makeTempDir();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  await writeByteTokenizer(folder);
  const tokenizer = createHfTokenizer(await loadTokenizerFiles(folder), { worker: "none" });
  const engine = serveEmbeddedEngine(createEmbeddedEngine({
    tokenizer,
    modelName: "bytes",
    maxContextTokens: CONTEXT,
    incremental: true,
    script: PLAY_SCRIPT,
    random: seededRandom(SEED).unit,
    tokenDelayMs: 1,
  }));
  stack.defer(() => engine.close());
  const ports = [freePort(), freePort()] as const;
  const start = (port: number) =>
    new ServerProcess({
      environment: {
        PORT: String(port),
        SGLANG_ROUTER_URL: engine.url,
        TOKENIZER: folder,
        MODEL_NAME: "bytes",
        MAX_CONTEXT_LEN: String(CONTEXT),
        ...storeOf(folder),
      },
    });
  const servers = ports.map(start);
  stack.defer(async () => void await Promise.all(servers.map((server) => server.end("SIGKILL"))));
  await Promise.all(servers.map((server) => server.listening));

  const signal = AbortSignal.timeout(DEADLINE_MS);
  const choice = seededRandom(SEED);
  let answered = 0;
  let wanted = Infinity;
  let onWanted = () => {};
  const client = new RetryingClient({
    signal,
    url: () => `http://127.0.0.1:${choice.pick(ports)}`,
    onSight(sight) {
      if (sight === "ended" && ++answered >= wanted) onWanted();
    },
  });
  const playing = Promise.all(Array.from({ length: AGENTS }, async (_, agent) => {
    const random = seededRandom(SEED + agent);
    const plays = [];
    for (let task = 0; task < TASKS; task++) {
      const id = `agent-${agent}-task-${task}`;
      plays.push(
        await playTask(client, { id, system: "Be an agent.", turns: 4 + random.integer(6), random, stop: never() }),
      );
    }
    return plays;
  }));
  playing.catch(() => {});

  const errors: string[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const due = Promise.withResolvers<void>();
    [wanted, onWanted] = [answered + 12 + choice.integer(12), due.resolve];
    await Promise.race([due.promise, playing]);
    const victim = kill % 2;
    await servers[victim]!.end("SIGKILL");
    errors.push(...servers[victim]!.errors);
    servers[victim] = start(ports[victim]!);
    await servers[victim]!.listening;
  }
  const plays = (await playing).flat();
  const totals = newTotals();
  const scorer = scoringEngine(engine.url, tokenizer);
  for (const play of plays) await checkPlay(client, scorer, play, totals);
  assert.equal(plays.length, AGENTS * TASKS);
  assert.ok(totals.retried > 0, "some requests met a kill");
  assert.deepEqual([...errors, ...servers.flatMap((server) => server.errors)], []);
}

Deno.test(`two processes on one KV file lose nothing, ${KILLS} kills included`, () =>
  loseNothing((folder) => ({ STORE: "kv", KV_PATH: `${folder}/tasks.sqlite` })));

testOnPostgres("a gateway on Postgres", (database) => {
  Deno.test(`two processes on one Postgres database lose nothing, ${KILLS} kills included`, () =>
    loseNothing(() => ({ STORE: "postgres", DATABASE_URL: database().url })));
});

function never(): AbortSignal {
  return new AbortController().signal;
}
