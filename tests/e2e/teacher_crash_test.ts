/** A process that is killed amid a scoring run and started again scores each turn once. */

import assert from "node:assert/strict";
import { createHfTokenizer } from "../../shared/adapters/tokenizer/hf_tokenizer.ts";
import { loadTokenizerFiles } from "../../shared/adapters/tokenizer/load_tokenizer_files.ts";
import { createEmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import { serveEmbeddedEngine } from "../../shared/engine/serve_embedded_engine.ts";
import { writeByteTokenizer } from "../fixtures/byte_tokenizer_folder.ts";
import type { Body } from "./harness.ts";
import { ServerProcess } from "./server_process.ts";

const TASKS = 500;
/** Tasks whose line was read when the process is killed. */
const KILL_AT = [120, 260];
const CONCURRENCY = 4;

Deno.test(`${TASKS} tasks are scored once each, though the process is killed amid the run`, async () => {
  const folder = await Deno.makeTempDir();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  await writeByteTokenizer(folder);
  const tokenizer = createHfTokenizer(await loadTokenizerFiles(folder), { worker: "none" });
  const common = { tokenizer, maxContextTokens: 4096, incremental: true };
  const student = serveEmbeddedEngine(createEmbeddedEngine({ ...common, modelName: "student" }));
  stack.defer(() => student.close());
  const teacherEngine = createEmbeddedEngine({ ...common, modelName: "teacher", seed: 7 });
  // It changes nothing; its hits count the requests that score.
  teacherEngine.faults.add({ when: { scoring: true }, fault: { kind: "delay", firstTokenMs: 0 } });
  const teacher = serveEmbeddedEngine(teacherEngine);
  stack.defer(() => teacher.close());
  const start = () =>
    new ServerProcess({
      environment: {
        PORT: "0",
        SGLANG_ROUTER_URL: student.url,
        TEACHER_SGLANG_URL: teacher.url,
        DISTILL_TEACHER_CONCURRENCY: String(CONCURRENCY),
        DISTILL_TOPK: "3",
        TOKENIZER: folder,
        MODEL_NAME: "bytes",
        MAX_CONTEXT_LEN: "4096",
        STORE: "kv",
        KV_PATH: `${folder}/tasks.sqlite`,
        LOG_LEVEL: "info",
      },
    });

  const scored = new Map<string, number>();
  for (const killAt of KILL_AT) {
    await using server = start();
    const url = await server.listening;
    if (killAt === KILL_AT[0]) await playAll(url);
    let killed = false;
    try {
      for await (const line of progress(url)) {
        count(scored, line);
        if (!killed && scored.size >= killAt) {
          killed = true;
          await server.end("SIGKILL");
        }
      }
    } catch (thrown) {
      if (!killed) throw thrown;
    }
    assert.ok(killed, "the run is cut off, and does not end");
  }
  await using server = start();
  const url = await server.listening;
  let summary: Body = null;
  const already: string[] = [];
  for await (const line of progress(url)) {
    if (line.task_id === undefined) summary = line;
    else if (line.turns === 0) already.push(line.task_id);
    count(scored, line);
  }
  assert.deepEqual([summary.done, summary.tasks, summary.failed], [true, TASKS, 0]);
  assert.ok([...scored.keys()].length >= TASKS - CONCURRENCY * KILL_AT.length);
  assert.ok([...scored.values()].every((turns) => turns === 1), "no turn is told as scored twice");
  assert.ok(already.length >= KILL_AT.at(-1)!, "what was scored is not scored again");
  const starts = KILL_AT.length + 1;
  const calls = teacherEngine.faults.list()[0]!.hits - starts;
  assert.ok(calls >= TASKS && calls <= TASKS + CONCURRENCY * KILL_AT.length, `${calls} calls for ${TASKS} turns`);

  using kv = await Deno.openKv(`${folder}/tasks.sqlite`);
  let kept = 0;
  for await (const _entry of kv.list({ prefix: ["scores"] })) kept++;
  assert.equal(kept, TASKS);
  for (const task of [0, 99, 250, TASKS - 1]) {
    const { result } = await (await fetch(`${url}/tasks/task-${task}/result`)).json();
    assert.ok(result.teacher_log_probs.every(Number.isFinite) && result.teacher_log_probs.length > 0);
  }
});

function count(scored: Map<string, number>, line: Body): void {
  if (line.status === "scored" && line.turns > 0) {
    scored.set(line.task_id, (scored.get(line.task_id) ?? 0) + line.turns);
  }
}

/** Makes the tasks, one turn each, some at a time. */
async function playAll(url: string): Promise<void> {
  let next = 0;
  async function playSome(): Promise<void> {
    while (next < TASKS) {
      const task = next++;
      const body = JSON.stringify({ task_id: `task-${task}`, group_id: "run" });
      const created = await (await fetch(`${url}/tasks`, { method: "POST", body })).json();
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${created.api_key}` },
        body: JSON.stringify({ messages: [{ role: "user", content: `task ${task}` }], max_tokens: 4 }),
      });
      assert.equal(response.status, 200, await response.text());
    }
  }
  await Promise.all(Array.from({ length: 8 }, playSome));
}

/** The lines of a scoring run as they come. */
async function* progress(url: string): AsyncGenerator<Body> {
  const response = await fetch(`${url}/teacher-score/tasks`, { method: "POST", body: '{"group_id":"run"}' });
  assert.equal(response.status, 200);
  let rest = "";
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line);
  }
}
