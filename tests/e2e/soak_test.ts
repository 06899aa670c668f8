/** The promise under a long random load: every exported sampled token has the logprob that the engine finds again after its exported prefix. */

import assert from "node:assert/strict";
import type { Script } from "../../shared/engine/script.ts";
import type { Body, Harness } from "./harness.ts";
import { startHarness } from "./harness.ts";
import { type Random, seededRandom } from "../fixtures/seeded_random.ts";

const TURNS = 2000;
const TASKS = 50;
const PARALLEL_TASKS = 8;
/** Tokens of tempered turns that are looked up one by one. */
const TEMPERED_CHECKS = 400;
/** Logprobs are float32 on the wire; beyond that they are the same numbers. */
const TOLERANCE = 1e-6;

/** Calls that are followed loosely: often whole, sometimes departed from in the middle, which makes malformed and odd ones. */
const SCRIPT: Script = {
  rules: [
    {
      match: "use one tool",
      retrigger: true,
      sharpness: 9,
      completions: [
        '<think>\nhm\n</think>\n\nSure.\n<tool_call>\n{"name": "look", "arguments": {"what":  "é ✓ 😀"}}\n</tool_call>',
      ],
    },
    {
      match: "use two tools",
      retrigger: true,
      sharpness: 9,
      completions: [
        '<tool_call>\n{"name": "look", "arguments": {"what": "a", "n": 60.0}}\n</tool_call>\n<tool_call>\n{"name": "count", "arguments": {}}\n</tool_call>',
      ],
    },
  ],
};

const TOOLS = ["look", "count"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object" } },
}));

const TEXTS = [
  "use one tool",
  "use two tools",
  "Grüße, 世界 — ça va? 👩‍👩‍👧‍👦",
  "plain words\n\nwith lines\t and tabs ",
  "",
  "<|im_end|> is a word here, <tool_call> too",
  "zero​width and e\u0301 combined",
  "x".repeat(300),
];

Deno.test(`every exported sampled token is found again by force-decoding (${TURNS} random turns)`, async () => {
  await using harness = await startHarness({ engine: { script: SCRIPT, random: seededRandom(7).unit } });
  const queue = Array.from({ length: TASKS }, (_, k) => k);
  const totals = { rows: 0, sampled: 0, raw: 0, turns: 0 };
  const tempered: TemperedToken[] = [];
  await Promise.all(Array.from({ length: PARALLEL_TASKS }, async () => {
    for (let k = queue.shift(); k !== undefined; k = queue.shift()) {
      const temperature = k % 5 === 4 ? 0.7 : 1;
      const task = await playTask(harness, k, temperature);
      totals.turns += task.turns;
      await checkRows(harness, task.rows, { temperature, totals, tempered });
    }
  }));
  assert.ok(totals.turns >= TURNS, `${totals.turns} turns`);
  assert.ok(totals.raw > 10_000, `${totals.raw} tokens at the raw basis were checked`);
  const random = seededRandom(11);
  assert.ok(tempered.length > TEMPERED_CHECKS);
  for (let k = 0; k < TEMPERED_CHECKS; k++) await checkTempered(harness, random.pick(tempered));
});

interface Played {
  readonly turns: number;
  readonly rows: readonly Body[];
}

/** Plays one agent with a mind of its own: tools, parallel calls, length cuts, streams, retries, another sample now and then. */
async function playTask(harness: Harness, seed: number, temperature: number): Promise<Played> {
  const random = seededRandom(1000 + seed);
  const { id, key } = await harness.createTask({
    sampling: { fixed: { temperature } },
    history: "branch",
    echo: "lenient",
  });
  const messages: Body[] = [{ role: "system", content: "You are an agent." }, {
    role: "user",
    content: "Begin; use one tool.",
  }];
  const goal = TURNS / TASKS;
  let turns = 0;
  for (let step = 0; turns < goal; step++) {
    assert.ok(step < goal * 3, "the conversation goes on");
    const body = { messages, tools: TOOLS, max_tokens: random.pick([3, 24, 60]), stream: random.chance(0.3) };
    let message = await ask(harness, key, body, {});
    turns++;
    if (random.chance(0.1)) {
      const again = await ask(harness, key, body, { "x-stainless-retry-count": "1" });
      assert.deepEqual(again, message, "a retry is answered with the same answer");
    }
    if (random.chance(0.05)) {
      const other = await ask(harness, key, body, {});
      turns++;
      if (random.chance(0.5)) message = other;
    }
    messages.push(echoed(message, random));
    for (const call of message.tool_calls ?? []) {
      messages.push({ role: "tool", tool_call_id: call.id, content: random.pick(TEXTS) });
    }
    if (!message.tool_calls || random.chance(0.2)) messages.push({ role: "user", content: random.pick(TEXTS) });
    // A context that fills up begins again: a history that shrinks is a branch of its own.
    if (messages.length > 60) messages.splice(2);
  }
  const finished = await harness.admin("POST", `/tasks/${id}/finish`, { reward: 1 });
  assert.equal(finished.status, 200);
  const { body } = await harness.admin("GET", `/tasks/${id}/result?format=rows&roles=main,branch,side,superseded`);
  const listed = await harness.admin("GET", `/tasks/${id}/turns`);
  assert.equal(listed.body.turns.length, turns);
  const exported = new Set<number>(body.rows.flatMap((row: Body) => row.path));
  assert.equal(exported.size, turns, "every turn is in a row");
  const trained = body.rows.reduce((sum: number, row: Body) => sum + row.trained_tokens, 0);
  assert.equal(trained, body.rows[0].trained_tokens_in_rollout);
  return { turns, rows: body.rows };
}

/** One call, streamed or not, as the assistant message. */
async function ask(harness: Harness, key: string, body: Body, headers: Record<string, string>): Promise<Body> {
  if (!body.stream) {
    const answer = await harness.chat(key, body, headers);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body.choices[0].message;
  }
  const response = await fetch(`${harness.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200);
  const events = (await response.text()).split("\n\n").filter((event) => event.startsWith("data: "));
  assert.equal(events.pop(), "data: [DONE]");
  const message: Body = { role: "assistant", content: "" };
  for (const event of events) {
    const delta = JSON.parse(event.slice(6)).choices[0]?.delta ?? {};
    if (delta.content) message.content += delta.content;
    if (delta.reasoning_content) {
      message.reasoning_content = (message.reasoning_content ?? "") + delta.reasoning_content;
    }
    for (const { index: _, ...call } of delta.tool_calls ?? []) (message.tool_calls ??= []).push(call);
  }
  if (message.content === "" && message.tool_calls) message.content = null;
  return message;
}

/** What scaffolds do to a message before they send it back: none of it changes the series. */
function echoed(message: Body, random: Random): Body {
  const echo = structuredClone(message);
  if (random.chance(0.3)) delete echo.reasoning_content;
  if (random.chance(0.3) && echo.content) echo.content = [{ type: "text", text: echo.content }];
  if (random.chance(0.5)) {
    for (const call of echo.tool_calls ?? []) {
      call.function.arguments = JSON.stringify(JSON.parse(call.function.arguments));
    }
  }
  return echo;
}

interface TemperedToken {
  readonly prefix: number[];
  readonly id: number;
  readonly logprob: number;
  readonly temperature: number;
}

async function checkRows(
  harness: Harness,
  rows: readonly Body[],
  check: {
    readonly temperature: number;
    readonly totals: { rows: number; sampled: number; raw: number };
    readonly tempered: TemperedToken[];
  },
): Promise<void> {
  const { engine } = harness.development.services.models.default;
  const owned = new Set<number>();
  for (const row of rows) {
    const length = row.response_length;
    for (const name of ["loss_mask", "sampled_mask", "logprobs"]) assert.equal(row[name].length, length);
    assert.equal(row.tokens.length, row.prompt_length + length);
    for (const turn of row.turns) {
      assert.ok(row.sampled_mask.slice(turn.start, turn.end).every((bit: number) => bit === 1));
      if (row.loss_mask[turn.start] === 1) {
        assert.ok(!owned.has(turn.turn), `turn ${turn.turn} trains once`);
        owned.add(turn.turn);
      }
    }
    check.totals.rows++;
    const tokens = Uint32Array.from(row.tokens);
    if (check.temperature === 1) {
      const scores = await engine.score({
        rid: crypto.randomUUID().replaceAll("-", ""),
        prompt: tokens.slice(0, row.prompt_length),
        response: tokens.slice(row.prompt_length),
      }, AbortSignal.timeout(60_000));
      row.sampled_mask.forEach((bit: number, k: number) => {
        if (bit === 0) return assert.equal(row.logprobs[k], 0);
        check.totals.raw++;
        assert.ok(
          Math.abs(scores[k]! - row.logprobs[k]) <= TOLERANCE,
          `token ${k} of the row to turn ${row.path.at(-1)}: exported ${row.logprobs[k]}, found ${scores[k]}`,
        );
      });
    } else {
      row.sampled_mask.forEach((bit: number, k: number) => {
        if (bit === 0 || k % 7 !== 0) return;
        const prefix = row.tokens.slice(0, row.prompt_length + k);
        check.tempered.push({
          prefix,
          id: row.tokens[row.prompt_length + k],
          logprob: row.logprobs[k],
          temperature: check.temperature,
        });
      });
    }
  }
}

/** A tempered logprob is looked up by sampling one token at that temperature and asking for the exported one's logprob there. */
async function checkTempered(harness: Harness, token: TemperedToken): Promise<void> {
  const response = await fetch(`${harness.development.served.url}/generate`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      input_ids: token.prefix,
      sampling_params: { temperature: token.temperature, max_new_tokens: 1 },
      return_logprob: true,
      token_ids_logprob: [token.id],
    }),
  });
  const { meta_info } = await response.json();
  const [[found, id]] = meta_info.output_token_ids_logprobs[0];
  assert.equal(id, token.id);
  assert.ok(Math.abs(found - token.logprob) <= TOLERANCE, `exported ${token.logprob}, found ${found}`);
}
