/** Every fault does what the table in README.md says, to the requests it is meant for. */

import assert from "node:assert/strict";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import {
  framesOf,
  generate,
  type GenerateReply,
  post,
  readFrames,
  refusalOf,
  stream,
  until,
} from "../../tests/fixtures/engine_client.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./embedded_engine.ts";
import type { EmbeddedEngineOptions } from "./engine_options.ts";
import type { Fault } from "./fault.ts";

const tokenizer = byteTokenizer();
const BODY = { input_ids: [65, 66], return_logprob: true, sampling_params: { max_new_tokens: 4, ignore_eos: true } };

function engineWith(fault: Fault | null, options: Partial<EmbeddedEngineOptions> = {}): EmbeddedEngine {
  const engine = createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 512, ...options });
  if (fault !== null) engine.faults.add({ fault });
  return engine;
}

async function answered(fault: Fault): Promise<{ status: number; body: unknown }> {
  return await refusalOf(await post(engineWith(fault), "/generate", BODY));
}

Deno.test("fault rules hit the requests their conditions name, and count", async () => {
  const engine = engineWith(null);
  const fault: Fault = { kind: "http", status: 429 };
  const status = async (body: Record<string, unknown>): Promise<number> => {
    const response = await post(engine, "/generate", { ...BODY, ...body });
    await response.text();
    return response.status;
  };
  const statuses = async (bodies: Record<string, unknown>[]): Promise<number[]> => {
    const found: number[] = [];
    for (const body of bodies) found.push(await status(body));
    engine.faults.clear();
    return found;
  };
  engine.faults.add({ when: { ridPrefix: "a" }, fault });
  assert.deepEqual(await statuses([{ rid: "ab" }, { rid: "ba" }]), [429, 200]);
  engine.faults.add({ when: { nth: 2 }, fault });
  assert.deepEqual(await statuses([{}, {}, {}]), [200, 429, 200]);
  engine.faults.add({ when: { times: 2 }, fault });
  assert.deepEqual(await statuses([{}, {}, {}]), [429, 429, 200]);
  engine.faults.add({ when: { promptTail: "needle" }, fault });
  assert.deepEqual(await statuses([{}, { input_ids: null, text: "a needle." }]), [200, 429]);
  engine.faults.add({ when: { stream: true }, fault });
  assert.deepEqual(await statuses([{}, { stream: true }]), [200, 429]);
  engine.faults.add({ when: { scoring: true }, fault });
  assert.deepEqual(await statuses([{}, { logprob_start_len: 0 }]), [200, 429]);
  assert.deepEqual(await statuses([{}]), [200]);
});

Deno.test("/faults arms, lists with hits, refuses what is no fault, and disarms", async () => {
  const engine = engineWith(null);
  const rule = { when: { times: 1 }, fault: { kind: "http", status: 503 } };
  assert.equal((await post(engine, "/faults", [rule])).status, 200);
  assert.deepEqual(await refusalOf(await post(engine, "/generate", BODY)), { status: 503, body: "" });
  assert.deepEqual(await (await engine.app.request("/faults")).json(), { faults: [{ rule, hits: 1 }] });
  assert.equal((await post(engine, "/faults", { fault: { kind: "nonsense" } })).status, 400);
  await engine.app.request("/faults", { method: "DELETE" });
  assert.deepEqual(engine.faults.list(), []);
});

Deno.test("http faults are any answer: plain 500, empty 503, 429 with a header, 503 with JSON", async () => {
  assert.deepEqual(await answered({ kind: "http", status: 500, body: "Internal Server Error" }), {
    status: 500,
    body: "Internal Server Error",
  });
  assert.deepEqual(await answered({ kind: "http", status: 503 }), { status: 503, body: "" });
  const json = { kind: "http", status: 503, body: '{"a":1}', contentType: "application/json" } as const;
  assert.deepEqual(await answered(json), { status: 503, body: { a: 1 } });
  const engine = engineWith({ kind: "http", status: 429, headers: { "retry-after": "3" } });
  assert.equal((await post(engine, "/generate", BODY)).headers.get("retry-after"), "3");
});

Deno.test("abort faults come in each of SGLang's wrappings", async () => {
  assert.deepEqual(await answered({ kind: "abort", by: "validation", message: "no" }), {
    status: 400,
    body: { error: { message: "no" } },
  });
  assert.deepEqual(await answered({ kind: "abort", by: "scheduler", status: 400, message: "no" }), {
    status: 400,
    body: { error: { message: "no" } },
  });
  for (const status of [500, 503] as const) {
    assert.deepEqual(await answered({ kind: "abort", by: "scheduler", status, message: "no", afterTokens: 1 }), {
      status,
      body: { object: "error", message: "no", type: String(status), param: null, code: status },
    });
  }
  const user = await generate(engineWith({ kind: "abort", by: "user", afterTokens: 2 }), BODY);
  assert.deepEqual([user.output_ids.length, user.meta_info.finish_reason?.type], [2, "abort"]);
  const queued = await generate(engineWith({ kind: "abort", by: "queue" }), BODY);
  assert.deepEqual(queued.meta_info.finish_reason, { type: "abort", message: "Abort in waiting queue" });
  assert.equal("prompt_tokens" in queued.meta_info, false);

  const error = await framesOf(
    await post(engineWith({ kind: "abort", by: "validation" }), "/generate", { ...BODY, stream: true }),
  );
  assert.deepEqual(error.map((frame) => frame === "[DONE]" || "error" in frame), [true, true]);
  const frames = await stream(engineWith({ kind: "abort", by: "scheduler", afterTokens: 2 }), BODY);
  assert.deepEqual(frames.map((frame) => frame.output_ids.length), [1, 2]);
  assert.deepEqual(frames.at(-1)?.meta_info.finish_reason, {
    type: "abort",
    message: "The scheduler gave up.",
    status_code: 503,
    err_type: null,
  });
});

Deno.test("a cut stream breaks without [DONE] after so many tokens, a cut answer in its text", async () => {
  const response = await post(engineWith({ kind: "cut", afterTokens: 2 }), "/generate", { ...BODY, stream: true });
  const seen: (GenerateReply | "[DONE]")[] = [];
  await assert.rejects(async () => {
    for await (const frame of readFrames(response)) seen.push(frame);
  });
  assert.deepEqual(seen.map((frame) => frame === "[DONE]" ? frame : frame.output_ids.length), [1, 2]);
  const whole = await post(engineWith({ kind: "cut", afterTokens: 0 }), "/generate", BODY);
  assert.equal(whole.status, 200);
  await assert.rejects(whole.text());
});

Deno.test("delays sleep before the first token and between tokens", async () => {
  const slept: number[] = [];
  const sleep = (ms: number): Promise<void> => {
    slept.push(ms);
    return Promise.resolve();
  };
  const reply = await generate(engineWith({ kind: "delay", firstTokenMs: 70, tokenMs: 5 }, { sleep }), BODY);
  assert.equal(reply.output_ids.length, 4);
  assert.deepEqual(slept, [70, 5, 5, 5]);
});

Deno.test("a hanging request ends by an abort, also before its first token and while scoring", async () => {
  for (
    const [afterTokens, body] of [[0, BODY], [2, BODY], [0, {
      ...BODY,
      sampling_params: { max_new_tokens: 0 },
    }]] as const
  ) {
    const engine = engineWith({ kind: "hang", afterTokens });
    const reply = generate(engine, { ...body, rid: "r" });
    await until(() => engine.running === 1);
    await post(engine, "/abort_request", { rid: "r" });
    assert.equal((await reply).output_ids.length, afterTokens);
  }
});

Deno.test("output faults falsify ids and logprobs where they are told to", async () => {
  const at = async (fault: Fault): Promise<GenerateReply> => await generate(engineWith(fault), BODY);
  const lengths = async (problem: "missing" | "short" | "long"): Promise<number | undefined> =>
    (await at({ kind: "logprobs", problem })).meta_info.output_token_logprobs?.length;
  assert.deepEqual([await lengths("missing"), await lengths("short"), await lengths("long")], [undefined, 3, 5]);
  const wrong = await at({ kind: "output_id", at: 1, id: 999 });
  assert.equal(wrong.output_ids[1], 999);
  assert.notEqual(wrong.meta_info.output_token_logprobs?.[1]?.[1], 999);
  const everywhere = await at({ kind: "output_id", at: 1, id: 999, everywhere: true });
  assert.equal(everywhere.meta_info.output_token_logprobs?.[1]?.[1], 999);
  const nothing = await at({ kind: "logprob", at: 2, value: null });
  assert.deepEqual(nothing.meta_info.output_token_logprobs?.map(([logprob]) => logprob === null), [
    false,
    false,
    true,
    false,
  ]);
  const text = await (await post(engineWith({ kind: "logprob", at: 0, value: "NaN" }), "/generate", BODY)).text();
  assert.match(text, /"output_token_logprobs":\[\[NaN,/);
  const dropped = await at({ kind: "meta", drop: ["prompt_tokens", "weight_version"] });
  assert.deepEqual(["prompt_tokens" in dropped.meta_info, "weight_version" in dropped.meta_info], [false, false]);
});

Deno.test("output faults hit the frame that holds the position, in deltas too", async () => {
  const engine = engineWith({ kind: "output_id", at: 2, id: 999 }, { incremental: true });
  const frames = await stream(engine, BODY);
  assert.deepEqual(frames.map((frame) => frame.output_ids.includes(999)), [false, false, true, false]);
});

Deno.test("input faults break the index law", async () => {
  const body = { ...BODY, logprob_start_len: 0, input_ids: [65, 66, 67], sampling_params: { max_new_tokens: 0 } };
  const entries = async (problem: "missing" | "short" | "shifted" | "null" | "wrong_id") =>
    (await generate(engineWith({ kind: "input_logprobs", problem }), body)).meta_info.input_token_logprobs;
  assert.equal(await entries("missing"), undefined);
  assert.deepEqual((await entries("short"))?.map(([, id]) => id), [65, 66]);
  assert.deepEqual((await entries("shifted"))?.map(([, id]) => id), [66, 67]);
  assert.deepEqual((await entries("null"))?.map(([logprob]) => logprob === null), [true, false, true]);
  assert.deepEqual((await entries("wrong_id"))?.map(([, id]) => id), [65, 66, 68]);
});

Deno.test("a deaf request misses aborts, and hears the one it hears late", async () => {
  let wake: (() => void) | null = null;
  const sleep = (): Promise<void> => new Promise((resolve) => wake = resolve);
  const engine = engineWith({ kind: "hang", afterTokens: 1 }, { sleep });
  engine.faults.add({ fault: { kind: "deaf", aborts: 2, delayMs: 50 } });
  const reply = generate(engine, { ...BODY, rid: "r" });
  await until(() => engine.running === 1);
  for (let abort = 0; abort < 2; abort++) await post(engine, "/abort_request", { rid: "r" });
  assert.deepEqual([engine.running, wake], [1, null]);
  await post(engine, "/abort_request", { rid: "r" });
  assert.equal(engine.running, 1);
  await until(() => {
    wake?.();
    return engine.running === 0;
  });
  assert.equal((await reply).meta_info.finish_reason?.type, "abort");
});

Deno.test("a disconnect aborts a request, but not a zombie or one in the background", async () => {
  for (const [kind, extra] of [["hang", {}], ["zombie", {}], ["hang", { background: true }]] as const) {
    const engine = engineWith({ kind, afterTokens: 1 });
    const gone = new AbortController();
    const whole = post(engine, "/generate", { ...BODY, rid: "whole", ...extra }, { signal: gone.signal });
    const response = await post(engine, "/generate", { ...BODY, rid: "stream", stream: true, ...extra });
    const reader = response.body!.getReader();
    await reader.read();
    await until(() => engine.running === 2);
    gone.abort();
    await reader.cancel();
    if (kind === "hang" && !("background" in extra)) {
      await until(() => engine.running === 0);
      await whole;
      continue;
    }
    const loads = await (await engine.app.request("/v1/loads")).json();
    assert.equal(loads.aggregate.total_running_reqs, 2);
    await post(engine, "/abort_request", { abort_all: true });
    await until(() => engine.running === 0);
    await whole;
  }
});

Deno.test("a zombie that was done when its client left stays until it is aborted", async () => {
  let wake: (() => void) | null = null;
  const sleep = (): Promise<void> => new Promise((resolve) => wake = resolve);
  const engine = engineWith({ kind: "zombie" }, { sleep, tokenDelayMs: 1 });
  const gone = new AbortController();
  const whole = post(engine, "/generate", { ...BODY, rid: "z" }, { signal: gone.signal });
  await until(() => wake !== null);
  gone.abort();
  let looks = 0;
  await until(() => {
    wake?.();
    return ++looks > 50;
  });
  assert.equal(engine.running, 1);
  await post(engine, "/abort_request", { rid: "z" });
  assert.equal((await (await whole).json()).output_ids.length, 4);
});

Deno.test("the server dies after so many tokens", async () => {
  const engine = engineWith({ kind: "die", afterTokens: 2 });
  const response = await post(engine, "/generate", { ...BODY, stream: true });
  await assert.rejects(response.text());
  await assert.rejects(async () => await engine.app.request("/health"));
});
