/** Tasks as agents live them, and what must be on record of them afterwards: what they were told, no turn less and none more. */

import assert from "node:assert/strict";
import { createSglangEngine } from "../../shared/adapters/sglang/sglang_engine.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { createTrackedBackground } from "../../shared/adapters/tracked_background.ts";
import type { Script } from "../../shared/engine/script.ts";
import type { Engine } from "../../shared/ports/engine.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import { createListLogger } from "../fixtures/list_logger.ts";
import type { Random } from "../fixtures/seeded_random.ts";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import type { Body } from "./harness.ts";
import { echoed, type Heard, type RetryingClient } from "./retrying_agent.ts";

/** What the model says to an agent that asks for a tool: loosely followed, so that some calls come out malformed. */
export const PLAY_SCRIPT: Script = {
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

/** One task as its agent lived it. */
export interface Play {
  readonly id: string;
  readonly history: "append_only" | "branch";
  readonly heard: readonly Heard[];
  /** What finishing it answered. */
  readonly finished: Body;
}

/** How a task is played. */
export interface PlayOptions {
  readonly id: string;
  /** The system message. */
  readonly system: string;
  readonly turns: number;
  readonly random: Random;
  /** Ends the play after the turn under way. */
  readonly stop: AbortSignal;
}

/** Plays a task from its creation to its finish. Every request only appends. */
export async function playTask(client: RetryingClient, options: PlayOptions): Promise<Play> {
  const { id, random, stop } = options;
  const history = random.pick(["append_only", "append_only", "branch"] as const);
  const created = await client.admin("POST", "/tasks", { task_id: id, history, echo: "lenient" }, {
    "idempotency-key": id,
  });
  const messages: Body[] = [
    { role: "system", content: options.system },
    { role: "user", content: `Begin ${id}: use a tool.` },
  ];
  const heard: Heard[] = [];
  while (heard.length < options.turns && (heard.length === 0 || !stop.aborted)) {
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
    if (!answer.message.tool_calls || random.chance(0.2)) messages.push({ role: "user", content: random.pick(TEXTS) });
  }
  const finished = await client.admin("POST", `/tasks/${id}/finish`, { reward: heard.length });
  return { id, history, heard, finished };
}

/** What checked plays add up to. */
export interface Totals {
  turns: number;
  /** Requests that were sent more than once. */
  retried: number;
  /** Answers that were given a second time. */
  replayed: number;
  /** Tokens found again. */
  sampled: number;
}

/** Nothing checked yet. */
export function newTotals(): Totals {
  return { turns: 0, retried: 0, replayed: 0, sampled: 0 };
}

/** The record of a task is what its agent was told: no turn less, and none more. */
export async function checkPlay(
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

/** The engine behind a gateway, to find logprobs again. */
export function scoringEngine(url: string, tokenizer: Tokenizer): Engine {
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
