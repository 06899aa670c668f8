/** Bodies over MAX_BODY_BYTES: refused whether the length is announced or not, and never read whole. */

import assert from "node:assert/strict";
import { sharedHarness, user } from "./harness.ts";

const MAX_BYTES = 20_000;

const harness = sharedHarness({
  environment: { MAX_BODY_BYTES: String(MAX_BYTES) },
  engine: { script: { rules: [{ match: "short", completions: ["Good."] }] } },
});

/** A chat body of exactly this many bytes. */
function bodyOf(bytes: number): string {
  const frame = JSON.stringify({ messages: [user("short ")] });
  return frame.replace("short ", `short ${"x".repeat(bytes - frame.length)}`);
}

/** The body in pieces: sent chunked, its length unannounced. */
function unannounced(text: string): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let from = 0;
  return new ReadableStream({
    pull(controller) {
      if (from >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(from, from += 4096));
    },
  });
}

async function post(path: string, body: string | ReadableStream<Uint8Array>, key?: string): Promise<Response> {
  return await fetch(harness().url + path, {
    method: "POST",
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    body,
  });
}

for (const [how, wrap] of [["announced", (text: string) => text], ["unannounced", unannounced]] as const) {
  Deno.test(`chat refuses one byte too many, ${how}, in OpenAI's shape`, async () => {
    const { key, id } = await harness().createTask();
    const response = await post("/v1/chat/completions", wrap(bodyOf(MAX_BYTES + 1)), key);
    assert.equal(response.status, 413);
    const { error } = await response.json();
    assert.equal(error.code, "body_too_large");
    assert.equal(error.type, "invalid_request_error");
    assert.match(error.message, /20000 bytes/);
    assert.equal(response.headers.get("x-should-retry"), "false");
    assert.equal((await harness().task(id)).turns, 0);
  });

  Deno.test(`chat takes a body of exactly the limit, ${how}`, async () => {
    const { key } = await harness().createTask();
    const response = await post("/v1/chat/completions", wrap(bodyOf(MAX_BYTES)), key);
    assert.equal(response.status, 200, await response.clone().text());
    await response.body?.cancel();
  });

  Deno.test(`own endpoints refuse one byte too many, ${how}`, async () => {
    for (const path of ["/tasks", "/generate", "/tokenize", "/detokenize"]) {
      const response = await post(path, wrap(JSON.stringify({ prompt: "x".repeat(MAX_BYTES) })));
      assert.equal(response.status, 413, path);
      const { error } = await response.json();
      assert.equal(error.code, "body_too_large");
      assert.deepEqual(error.details, { max_bytes: MAX_BYTES });
      assert.equal(error.retryable, false);
    }
  });
}

Deno.test("a body that never ends is refused at the limit, not read on", async () => {
  const { key } = await harness().createTask();
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1000;
      controller.enqueue(new Uint8Array(1000).fill(0x20));
      // Bounds the test, far beyond what any buffer between holds.
      if (sent > 200 * 1024 * 1024) controller.error(new Error("It was read on and on"));
    },
  });
  const refused = await post("/v1/chat/completions", endless, key).then(
    async (response) => ({ status: response.status, code: (await response.json()).error.code }),
    (cause: unknown) => String(cause),
  );
  // A client that is still sending may see the connection close before it sees the answer.
  if (typeof refused === "string") assert.doesNotMatch(refused, /read on and on/);
  else assert.deepEqual(refused, { status: 413, code: "body_too_large" });
});

Deno.test("a client that hangs up while it sends its body leaves nothing behind", async () => {
  const { key, id } = await harness().createTask();
  const hangUp = new AbortController();
  const sentSome = Promise.withResolvers<void>();
  const slow = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"messages": ['));
    },
    pull() {
      sentSome.resolve();
      return new Promise(() => {});
    },
  });
  const call = fetch(`${harness().url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: slow,
    signal: hangUp.signal,
  });
  await sentSome.promise;
  hangUp.abort();
  await assert.rejects(call);
  const task = await harness().task(id);
  assert.deepEqual({ turns: task.turns, in_flight: task.in_flight }, { turns: 0, in_flight: 0 });
  assert.equal((await harness().chat(key, { messages: [user("short")] })).status, 200);
});
