/**
 * Long tasks, long series and many tasks: what a call costs is counted (what is read, written, compared and tokenized),
 * never timed, and must not grow with what came before it.
 */

import assert from "node:assert/strict";
import { openDenoKvStore } from "../../shared/adapters/kv/deno_kv_store.ts";
import { openPostgresStore } from "../../shared/adapters/postgres/postgres_store.ts";
import { createMemoryStore } from "../../shared/adapters/memory_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { locate } from "../../shared/core/locate.ts";
import type { AssistantMessage, Conversation, Message } from "../../shared/core/message.ts";
import { requestUnits } from "../../shared/core/request_units.ts";
import type { Clock } from "../../shared/ports/clock.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import { byteTokenizer } from "../fixtures/byte_tokenizer.ts";
import { createRecorderWorld, makeRenderer, type RecorderWorld } from "../fixtures/recorder_world.ts";
import { seededRandom } from "../fixtures/seeded_random.ts";
import { spyOnStore, type SpyStore } from "../fixtures/spy_store.ts";
import { emptyDatabase, testOnPostgres } from "./postgres_harness.ts";
import { type KvSpy, spyOnKv } from "./kv_spy.ts";

const TURNS = 400;
const SERIES_TOKENS = 131_072;
const OPEN_TASKS = 10_000;

/** Every call is over before its lease is due, however busy the machine is. */
const NO_TIME: Clock = {
  now: () => systemClock.now(),
  sleep: (_ms, signal) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    }),
};

type Page = Awaited<ReturnType<TaskStore["listTasks"]>>;

/** A store under watch; `kv` where it is a KV database. */
interface Watched {
  readonly spy: SpyStore;
  readonly kv: KvSpy | null;
}

testScale("a memory store", () => Promise.resolve({ spy: spyOnStore(createMemoryStore()), kv: null }));

testScale("a KV store", async () => {
  const kv = spyOnKv(await Deno.openKv(":memory:"));
  return { kv, spy: spyOnStore(openDenoKvStore({ kv: kv.kv, clock: systemClock, maxChecks: 40 })) };
});

testOnPostgres("a Postgres store at scale", (database) => {
  testScale("a Postgres store", async () => {
    const { url } = database();
    await emptyDatabase(url);
    return { kv: null, spy: spyOnStore(openPostgresStore({ url, clock: systemClock })) };
  });
});

/** A tokenizer that counts what it encodes. */
function countingTokenizer(): Tokenizer & { encoded: number } {
  const tokenizer = byteTokenizer();
  const counting = {
    ...tokenizer,
    encoded: 0,
    encodeAsync(text: string): Promise<Uint32Array> {
      counting.encoded += text.length;
      return tokenizer.encodeAsync(text);
    },
  };
  return counting;
}

/** A conversation whose every turn is alike: a reply with a call, and its result. */
class LongConversation {
  readonly messages: Message[] = [
    { role: "system", content: "Be an agent.", source: 0 },
    { role: "user", content: "Work until it is done.", source: 1 },
  ];

  get next(): Conversation {
    return { messages: [...this.messages], tools: [{ name: "run", raw: { name: "run" } }], settings: {} };
  }

  /** What the model says in a turn; of one length. */
  static says(turn: number): string {
    const path = String(turn).padStart(5, "0");
    return `Step ${path}.\n<tool_call>\n{"name": "run", "arguments": {"path": "${path}"}}\n</tool_call>`;
  }

  take(reply: AssistantMessage): void {
    this.messages.push({ ...reply, source: this.messages.length });
    const toolCallId = reply.toolCalls[0]!.id;
    this.messages.push({ role: "tool", toolCallId, content: "It went well.", source: this.messages.length });
  }
}

/** What one call asked of the store, counted. */
function countsOf({ spy, kv }: Watched): Record<string, unknown> {
  return {
    ...Object.fromEntries([...spy.calls].sort(([a], [b]) => a < b ? -1 : 1)),
    ...(kv === null ? {} : { kvReads: kv.reads.length, kvCommits: kv.commits.length }),
  };
}

function reset({ spy, kv }: Watched): void {
  spy.reset();
  if (kv !== null) [kv.reads.length, kv.commits.length] = [0, 0];
}

/** Plays turns; `onTurn` sees what each was counted for. */
async function playTurns(
  world: RecorderWorld,
  played: {
    readonly taskId: string;
    readonly conversation: LongConversation;
    readonly from: number;
    readonly to: number;
  },
  onTurn: (turn: number, prompt: Conversation) => void = () => {},
): Promise<void> {
  const { taskId, conversation } = played;
  for (let turn = played.from; turn < played.to; turn++) {
    const prompt = conversation.next;
    const { reply } = await world.ask(taskId, { conversation: prompt, says: LongConversation.says(turn) });
    await world.services.background.idle();
    conversation.take(reply);
    onTurn(turn, prompt);
  }
}

/** The same for every store. */
function testScale(name: string, open: () => Promise<Watched>): void {
  Deno.test(`a turn costs the same at turn 10 and at turn ${TURNS}: over ${name} it reads the task's record alone`, async () => {
    const watched = await open();
    const tokenizer = countingTokenizer();
    await using world = await createRecorderWorld({
      clock: NO_TIME,
      store: watched.spy.store,
      renderer: await makeRenderer(tokenizer),
    });
    const { taskId } = await world.createTask();
    const conversation = new LongConversation();
    const counts: { store: unknown; encoded: number; prompt: Conversation }[] = [];
    [tokenizer.encoded] = [0];
    reset(watched);
    await playTurns(world, { taskId, conversation, from: 0, to: TURNS }, (_, prompt) => {
      counts.push({ store: countsOf(watched), encoded: tokenizer.encoded, prompt });
      [tokenizer.encoded] = [0];
      reset(watched);
    });
    const tenth = counts[10]!;
    assert.deepEqual(tenth.store, {
      appendTurn: 1,
      // The caller's key opens the task; nothing else is read.
      getTask: 1,
      putEvents: 1,
      stageTurn: 1,
      ...(watched.kv === null ? {} : { kvReads: 1, kvCommits: 2 }),
    });
    for (let turn = 10; turn < TURNS; turn++) {
      assert.deepEqual(counts[turn]!.store, tenth.store, `turn ${turn}`);
      assert.equal(counts[turn]!.encoded, tenth.encoded, `turn ${turn} tokenizes its increment`);
    }

    const { task } = await world.services.tasks.get(taskId);
    const { forest } = await world.services.exporter.judged(task);
    const extra = [10, TURNS - 1].map((turn) => {
      const units = requestUnits(counts[turn]!.prompt);
      return locate(forest, units, { echo: "lenient" }).comparisons - units.units.length;
    });
    assert.ok(Math.max(...extra) <= 4, `${extra} comparisons beyond one a unit`);
    const shorter = requestUnits(counts[10]!.prompt);
    assert.ok(locate(forest, shorter, { echo: "strict" }).comparisons <= shorter.units.length + 4);
  });

  Deno.test(`a process that knows nothing of a task of ${TURNS} turns reads it in one pass over ${name}`, async () => {
    const watched = await open();
    const conversation = new LongConversation();
    const first = await createRecorderWorld({ clock: NO_TIME, store: watched.spy.store });
    const { taskId } = await first.createTask();
    await playTurns(first, { taskId, conversation, from: 0, to: TURNS });
    await using second = await createRecorderWorld({ clock: NO_TIME, store: watched.spy.store });
    reset(watched);
    await playTurns(second, { taskId, conversation, from: TURNS, to: TURNS + 1 });
    assert.equal(watched.spy.calls.get("readTurns"), 1);
    if (watched.kv !== null) {
      assert.deepEqual(watched.kv.reads, ["get", "list"], "the record, and one pass over the turns");
    }
    reset(watched);
    await playTurns(second, { taskId, conversation, from: TURNS + 1, to: TURNS + 3 });
    assert.equal(watched.spy.calls.get("readTurns"), undefined);

    reset(watched);
    const { task } = await second.services.tasks.get(taskId);
    const region = await second.services.exporter.region(task);
    assert.equal(region.reason, null);
    // What may change is asked for once each; the turns are not read again.
    assert.equal(watched.spy.calls.get("readTurns"), undefined);
    for (const [method, count] of watched.spy.calls) assert.equal(count, 1, method);
    if (watched.kv !== null) assert.equal(watched.kv.reads.length, watched.spy.calls.size);
  });

  Deno.test(`a series of ${SERIES_TOKENS} tokens is recorded, read back and exported whole over ${name}`, async () => {
    const watched = await open();
    const { spy } = watched;
    const world = await createRecorderWorld({ store: spy.store });
    const { taskId } = await world.createTask();
    const messages: Message[] = [{ role: "user", content: "long ".repeat(20_000), source: 0 }];
    let tokens = 0;
    // What a turn has beside the words of the model: its stop, the next message and the markup around them.
    let beside = 0;
    while (tokens < SERIES_TOKENS) {
      const says = "y".repeat(Math.min(6_000, SERIES_TOKENS - tokens - beside));
      const conversation = { messages: [...messages], tools: [], settings: {} };
      const answer = await world.ask(taskId, { conversation, says });
      if (tokens > 0) beside = answer.promptTokens - tokens + 1;
      tokens = answer.promptTokens + answer.completion.length;
      const at = messages.length;
      messages.push({ ...answer.reply, source: at }, { role: "user", content: "on", source: at + 1 });
    }
    assert.equal(tokens, SERIES_TOKENS);
    const { task } = await world.services.tasks.get(taskId);
    const warm = await world.services.exporter.region(task);

    await using cold = await createRecorderWorld({ store: spy.store });
    reset(watched);
    const region = await cold.services.exporter.region(task);
    assert.equal(spy.calls.get("readTurns"), 1);
    assert.deepEqual(region, warm);
    const { prompt_token_ids: prompt, completion_token_ids: response, logprobs, loss_mask: mask } = Object(
      region.result,
    );
    assert.equal(prompt.length + response.length, SERIES_TOKENS);
    assert.deepEqual([logprobs.length, mask.length], [response.length, response.length]);
    assert.deepEqual(
      await cold.services.exporter.result(task, { format: "rows" }).then((rows) => Object(rows).rows.length),
      1,
    );
  });

  Deno.test(`a call costs the same beside ${OPEN_TASKS} open tasks over ${name}, and they can be listed`, async () => {
    const watched = await open();
    await using world = await createRecorderWorld({ clock: NO_TIME, store: watched.spy.store });
    const alone = await world.createTask();
    const own = new LongConversation();
    const costs: unknown[] = [];
    const note = () => void (costs.push(countsOf(watched)), reset(watched));
    reset(watched);
    await playTurns(world, { taskId: alone.taskId, conversation: own, from: 0, to: 3 }, note);

    const taskIds: string[] = [];
    while (taskIds.length < OPEN_TASKS) {
      const some = await Promise.all(Array.from({ length: 500 }, () => world.createTask({ group_id: "all" })));
      taskIds.push(...some.map(({ taskId }) => taskId));
    }
    const random = seededRandom(9);
    reset(watched);
    await playTurns(world, { taskId: alone.taskId, conversation: own, from: 3, to: 4 }, note);
    for (let k = 0; k < 100; k++) {
      const conversation = new LongConversation();
      await playTurns(world, { taskId: random.pick(taskIds), conversation, from: 0, to: 1 }, note);
    }
    const [, ...later] = costs;
    for (const cost of later) assert.deepEqual(cost, later[0]);

    const listed = new Set<string>();
    let cursor: string | null = "";
    while (cursor !== null) {
      const page: Page = await world.services.tasks.list({
        groupId: "all",
        limit: 1000,
        ...(cursor === "" ? {} : { cursor }),
      });
      for (const task of page.tasks) listed.add(task.taskId);
      cursor = page.cursor;
    }
    assert.deepEqual(listed, new Set(taskIds));
  });
}
