/** Engines that abort, lie, answer nonsense or break off: a typed failure each time, never a turn; afterwards the same request works. */

import assert from "node:assert/strict";
import type { Fault } from "../../shared/engine/fault.ts";
import { assertUnharmed } from "./engine_trouble.ts";
import { sharedHarness, user } from "./harness.ts";

const harness = sharedHarness({
  // What may be tried again is tried for a moment only: these engines do not get better.
  environment: { ENGINE_RETRY_S: "0" },
  engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you, and a good day."] }] } },
});

const hello = { messages: [user("Hello")] };

interface Expected {
  readonly status: number;
  readonly code: string;
  readonly retry: boolean;
}

const FAILED: Expected = { status: 502, code: "engine_failed", retry: true };
const REFUSED: Expected = { status: 502, code: "engine_failed", retry: false };
const LIES: Expected = { status: 502, code: "engine_inconsistent", retry: true };
const UNAVAILABLE: Expected = { status: 503, code: "engine_unavailable", retry: true };

/** A whole reply that says what it is told to. */
function reply(meta: Record<string, unknown>, ids: readonly unknown[] = [9707, 151645]): string {
  return JSON.stringify({
    text: "Hello",
    output_ids: ids,
    meta_info: {
      finish_reason: { type: "stop", matched: 151645 },
      output_token_logprobs: ids.map((id) => [-0.5, id, null]),
      completion_tokens: ids.length,
      ...meta,
    },
  });
}

function http(status: number, body: string, contentType = "application/json"): Fault {
  return { kind: "http", status, body, contentType };
}

function frame(body: string): string {
  return `data: ${body}\n\n`;
}

type Case = readonly [what: string, fault: Fault, expected: Expected];

const WHOLE: readonly Case[] = [
  ["refuses the request as invalid", { kind: "abort", by: "validation", message: "No." }, REFUSED],
  ["aborts in the scheduler with 400", { kind: "abort", by: "scheduler", status: 400 }, REFUSED],
  ["aborts in the scheduler with 500", { kind: "abort", by: "scheduler", status: 500 }, FAILED],
  ["aborts in the scheduler with 503", { kind: "abort", by: "scheduler", status: 503 }, UNAVAILABLE],
  ["aborts after tokens with 503", { kind: "abort", by: "scheduler", status: 503, afterTokens: 3 }, UNAVAILABLE],
  ["aborts for a user at once", { kind: "abort", by: "user" }, FAILED],
  ["aborts for a user after tokens", { kind: "abort", by: "user", afterTokens: 3 }, FAILED],
  ["aborts in the queue", { kind: "abort", by: "queue" }, FAILED],
  ["answers a plain 500", http(500, "Internal Server Error", "text/plain"), FAILED],
  ["answers an empty 503", http(503, "", "text/plain"), UNAVAILABLE],
  ["answers 429", http(429, "{}"), UNAVAILABLE],
  ["answers 401", http(401, '{"error": "Unauthorized"}'), REFUSED],
  ["answers HTML under 200", http(200, "<html></html>", "text/html"), LIES],
  ["answers an empty object", http(200, "{}"), LIES],
  ["answers a list", http(200, "[]"), LIES],
  ["answers without a finish reason", { kind: "meta", drop: ["finish_reason"] }, LIES],
  ["breaks off in its answer", { kind: "cut", afterTokens: 3 }, FAILED],
  ["sends no logprobs", { kind: "logprobs", problem: "missing" }, LIES],
  ["sends a logprob too few", { kind: "logprobs", problem: "short" }, LIES],
  ["sends a logprob too many", { kind: "logprobs", problem: "long" }, LIES],
  ["sends null for a logprob", { kind: "logprob", at: 1, value: null }, LIES],
  ["sends NaN for a logprob", { kind: "logprob", at: 1, value: "NaN" }, LIES],
  ["sends an id that is not the logprob's", { kind: "output_id", at: 1, id: 5 }, LIES],
  [
    "sends an id outside the vocabulary",
    { kind: "output_id", at: 1, id: 999_999_999, everywhere: true },
    LIES,
  ],
  ["sends a negative id", { kind: "output_id", at: 1, id: -1, everywhere: true }, LIES],
  ["counts other prompt tokens than were sent", http(200, reply({ prompt_tokens: 4 })), LIES],
  ["counts more tokens than it sends", http(200, reply({ completion_tokens: 3 })), LIES],
  ["counts fewer tokens than it sends", http(200, reply({ completion_tokens: 1 })), LIES],
  ["says that it stopped at a token it did not sample", http(200, reply({}, [9707])), LIES],
  ["says that it met NaN", http(200, reply({ finish_reason: { type: "stop", matched: "NaN happened" } })), LIES],
  ["ends in an unknown way", http(200, reply({ finish_reason: { type: "tired" } })), LIES],
  ["sends a list of texts for ids", http(200, reply({}, ["9707", 151645])), LIES],
];

for (const [what, fault, expected] of WHOLE) {
  Deno.test(`an engine that ${what} is ${expected.status} ${expected.code}, and nothing is recorded`, async () => {
    const { engine } = harness().development;
    const task = await harness().createTask({ on_abort: "fail" });
    engine.faults.add({ fault });
    const { status, headers, body } = await harness().chat(task.key, hello);
    engine.faults.clear();
    assert.equal(status, expected.status, JSON.stringify(body));
    assert.equal(body.error.code, expected.code);
    assert.equal(body.error.type, "server_error");
    assert.equal(headers.get("x-should-retry"), String(expected.retry));
    assert.equal(headers.get("x-verbatim-turn"), "none");
    assert.equal(headers.has("retry-after"), expected.status === 503);
    await harness().engineIdle();
    await assertUnharmed(harness(), task, hello);
  });
}

const EVENTS = "text/event-stream";

const BEFORE_A_TOKEN: readonly Case[] = [
  ["refuses the request as invalid", { kind: "abort", by: "validation" }, REFUSED],
  ["aborts in the scheduler with 500", { kind: "abort", by: "scheduler", status: 500 }, FAILED],
  ["aborts in the scheduler with 503", { kind: "abort", by: "scheduler", status: 503 }, UNAVAILABLE],
  ["aborts for a user", { kind: "abort", by: "user" }, FAILED],
  ["aborts in the queue", { kind: "abort", by: "queue" }, FAILED],
  ["answers a plain 500", http(500, "Internal Server Error", "text/plain"), FAILED],
  ["breaks off", { kind: "cut", afterTokens: 0 }, FAILED],
  ["sends no logprobs", { kind: "logprobs", problem: "missing" }, LIES],
  ["sends NaN for a logprob", { kind: "logprob", at: 0, value: "NaN" }, LIES],
  ["sends an id outside the vocabulary", { kind: "output_id", at: 0, id: 999_999_999, everywhere: true }, LIES],
  ["ends without an answer", http(200, "data: [DONE]\n\n", EVENTS), LIES],
  ["sends no frame at all", http(200, "", EVENTS), FAILED],
  ["sends a frame that is not JSON", http(200, "data: {\n\n", EVENTS), LIES],
];

for (const [what, fault, expected] of BEFORE_A_TOKEN) {
  Deno.test(`a stream whose engine ${what} before a token is ${expected.status} ${expected.code}`, async () => {
    const { engine } = harness().development;
    const task = await harness().createTask({ on_abort: "fail" });
    engine.faults.add({ fault });
    const { status, headers, body } = await harness().chat(task.key, { ...hello, stream: true });
    engine.faults.clear();
    assert.equal(status, expected.status, JSON.stringify(body));
    assert.equal(body.error.code, expected.code);
    assert.equal(headers.get("x-should-retry"), String(expected.retry));
    await harness().engineIdle();
    await assertUnharmed(harness(), task, { ...hello });
  });
}

const IN_STREAM: readonly Case[] = [
  ["breaks off", { kind: "cut", afterTokens: 3 }, FAILED],
  ["aborts in the scheduler", { kind: "abort", by: "scheduler", status: 503, afterTokens: 3 }, FAILED],
  ["aborts for a user", { kind: "abort", by: "user", afterTokens: 3 }, FAILED],
  ["sends null for a logprob", { kind: "logprob", at: 3, value: null }, LIES],
  ["sends NaN for a logprob", { kind: "logprob", at: 3, value: "NaN" }, LIES],
  ["sends an id that is not the logprob's", { kind: "output_id", at: 3, id: 5 }, LIES],
  ["sends an id outside the vocabulary", { kind: "output_id", at: 3, id: 999_999_999, everywhere: true }, LIES],
  [
    "ends without a finish reason",
    http(200, frame(reply({ finish_reason: null })) + frame("[DONE]"), EVENTS),
    LIES,
  ],
  [
    "goes on after its end",
    http(200, frame(reply({})) + frame(reply({ completion_tokens: 4 })) + frame("[DONE]"), EVENTS),
    LIES,
  ],
  [
    "lies about the prompt at the end",
    http(200, frame(reply({ finish_reason: null }, [9707])) + frame(reply({ prompt_tokens: 4 })), EVENTS),
    LIES,
  ],
  ["never says [DONE]", http(200, frame(reply({ prompt_tokens: undefined })), EVENTS), FAILED],
];

for (const [what, fault, expected] of IN_STREAM) {
  Deno.test(`a stream whose engine ${what} after tokens ends with ${expected.code} and a broken connection`, async () => {
    const { engine } = harness().development;
    const task = await harness().createTask({ on_abort: "fail" });
    engine.faults.add({ fault });
    const stream = await harness().stream(task.key, hello);
    const frames = await stream.rest();
    engine.faults.clear();
    // The headers left with the first token.
    assert.equal(stream.status, 200);
    const { error } = frames.at(-1);
    assert.equal(error?.code, expected.code, JSON.stringify(frames));
    assert.equal(error.type, "server_error");
    assert.equal(stream.end, "broken");
    // Nothing that looks like an end came before it.
    assert.ok(frames.slice(0, -1).every((chunk) => chunk.choices[0].finish_reason === null && !chunk.verbatim));
    await harness().engineIdle();
    await assertUnharmed(harness(), task, hello);
  });
}

Deno.test("a turn that an engine failed leaves the turns before as they were, and its retry extends the same series", async () => {
  const { engine } = harness().development;
  const { key, id } = await harness().createTask();
  const first = await harness().chat(key, hello);
  const next = { messages: [...hello.messages, first.body.choices[0].message, user("More")], max_tokens: 5 };
  for (const stream of [false, true]) {
    engine.faults.add({ fault: { kind: "cut", afterTokens: 2 } });
    const failed = await harness().stream(key, { ...next, stream });
    await failed.rest();
    engine.faults.clear();
    assert.equal((await harness().task(id)).turns, 1);
  }
  await harness().engineIdle();
  await harness().chat(key, next);
  const turns = await harness().turns(id);
  assert.deepEqual(turns.map((turn) => [turn.relation, turn.parent]), [["root", null], ["retry", 0]]);
  const { capture } = await harness().task(id);
  assert.deepEqual(capture, { valid: true, reason: null, provisional: true });
});
