import assert from "node:assert/strict";
import { createFakeClock, type FakeClock } from "../../tests/fixtures/fake_clock.ts";
import { until } from "../../tests/fixtures/engine_client.ts";
import { type Loopback, serveLoopback } from "../../tests/fixtures/loopback.ts";
import { VerbatimError } from "../core/errors.ts";
import { dataFrame, type SseOptions, sseResponse } from "./sse.ts";

const KEEP_ALIVE_MS = 10_000;

/** A source that a test feeds. */
function feed(): {
  frames: AsyncGenerator<string>;
  send(frame: string): void;
  end(): void;
  fail(error: unknown): void;
} {
  const source = new TransformStream<string, string>(undefined, { highWaterMark: 1000 });
  const writer = source.writable.getWriter();
  const ignore = (): void => {};
  async function* frames(): AsyncGenerator<string> {
    yield* source.readable;
  }
  return {
    frames: frames(),
    send: (frame) => void writer.write(frame).catch(ignore),
    end: () => void writer.close().catch(ignore),
    fail: (error) => void writer.abort(error).catch(ignore),
  };
}

/** A server that answers every request with these frames, and what it was told. */
function serveFrames(
  frames: () => AsyncIterable<string>,
  options: { clock?: FakeClock; headers?: Record<string, string> } = {},
): { loopback: Loopback; ends: boolean[]; cancels: number[] } {
  const ends: boolean[] = [];
  const cancels: number[] = [];
  const sse: SseOptions = {
    clock: options.clock ?? createFakeClock(),
    keepAliveMs: KEEP_ALIVE_MS,
    keepAlive: ": still here\n\n",
    errorFrame: (error) => dataFrame({ error: error instanceof Error ? error.message : "?" }),
    headers: options.headers ?? {},
    onEnd: (whole) => ends.push(whole),
    onCancel: () => cancels.push(1),
  };
  const loopback = serveLoopback(async (request) => {
    if (request.url.endsWith("/ping")) return new Response("pong");
    try {
      return await sseResponse(frames(), sse);
    } catch (thrown) {
      assert.ok(thrown instanceof VerbatimError);
      return new Response(thrown.code, { status: thrown.status });
    }
  });
  return { loopback, ends, cancels };
}

/** What came before the end, and how the body ended. */
async function readAll(response: Response): Promise<{ text: string; whole: boolean }> {
  let text = "";
  try {
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) text += part;
    return { text, whole: true };
  } catch {
    return { text, whole: false };
  }
}

Deno.test("sseResponse sends every frame, ends cleanly and says so once", async () => {
  async function* frames(): AsyncGenerator<string> {
    for (let n = 0; n < 100; n++) {
      if (n % 7 === 0) await Promise.resolve();
      yield dataFrame({ n });
    }
  }
  const { loopback, ends, cancels } = serveFrames(frames, { headers: { "x-request-id": "req_1" } });
  await using server = loopback;
  const response = await fetch(server.url);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal(response.headers.get("cache-control"), "no-cache");
  assert.equal(response.headers.get("x-accel-buffering"), "no");
  assert.equal(response.headers.get("x-request-id"), "req_1");
  const { text, whole } = await readAll(response);
  assert.equal(text, Array.from({ length: 100 }, (_, n) => dataFrame({ n })).join(""));
  assert.ok(whole);
  assert.deepEqual({ ends, cancels }, { ends: [true], cancels: [] });
});

Deno.test("sseResponse holds the headers back until the first frame", async () => {
  const source = feed();
  const { loopback } = serveFrames(() => source.frames);
  await using server = loopback;
  let answered = false;
  const response = fetch(server.url).then((response) => {
    answered = true;
    return response;
  });
  for (let round = 0; round < 5; round++) assert.equal(await (await fetch(`${server.url}/ping`)).text(), "pong");
  assert.equal(answered, false);
  source.send(dataFrame(1));
  source.end();
  assert.equal((await readAll(await response)).text, dataFrame(1));
});

Deno.test("sseResponse lets a failure before the first frame keep its status", async () => {
  async function* frames(): AsyncGenerator<string> {
    await Promise.resolve();
    if (frames.length === 0) throw new VerbatimError("engine_unavailable", "The engine can't take the request now");
    yield "";
  }
  const { loopback, ends } = serveFrames(frames);
  await using server = loopback;
  const response = await fetch(server.url);
  assert.equal(response.status, 503);
  assert.equal(await response.text(), "engine_unavailable");
  assert.deepEqual(ends, []);
});

Deno.test("sseResponse sends the headers after the longest silence, then a keep-alive into each further one", async () => {
  const clock = createFakeClock();
  const source = feed();
  const { loopback, ends } = serveFrames(() => source.frames, { clock });
  await using server = loopback;
  const answering = fetch(server.url);
  await clock.untilSleeping(1);
  await clock.advance(KEEP_ALIVE_MS);
  const response = await answering;
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let silence = 0; silence < 3; silence++) {
    await clock.untilSleeping(1);
    await clock.advance(KEEP_ALIVE_MS);
    assert.equal((await reader.read()).value, ": still here\n\n");
  }
  await clock.untilSleeping(1);
  await clock.advance(KEEP_ALIVE_MS - 1);
  source.send(dataFrame("late"));
  assert.equal((await reader.read()).value, dataFrame("late"));
  source.end();
  assert.equal((await reader.read()).done, true);
  assert.deepEqual(ends, [true]);
  assert.equal(clock.sleeping, 0);
});

async function* failingAfterOne(error: unknown): AsyncGenerator<string> {
  yield dataFrame(1);
  await Promise.resolve();
  throw error;
}

Deno.test("sseResponse tells of a failure in the middle, then breaks the connection", async () => {
  for (const error of [new VerbatimError("engine_failed", "The engine broke"), new Error("inner"), "no error"]) {
    const clock = createFakeClock();
    const { loopback, ends, cancels } = serveFrames(() => failingAfterOne(error), { clock });
    await using server = loopback;
    const response = await fetch(server.url);
    assert.equal(response.status, 200);
    const reading = readAll(response);
    await until(() => ends.length === 1);
    await clock.untilSleeping(1);
    await clock.advance(1000);
    const { text, whole } = await reading;
    assert.equal(text, dataFrame(1) + dataFrame({ error: error instanceof Error ? error.message : "?" }));
    assert.equal(whole, false, "a clean end would look like success");
    assert.deepEqual({ ends, cancels }, { ends: [false], cancels: [] });
    assert.equal(clock.sleeping, 0);
  }
});

Deno.test("sseResponse reads its source to the end while the client reads nothing", async () => {
  const frame = dataFrame("x".repeat(64 * 1024));
  let made = 0;
  async function* frames(): AsyncGenerator<string> {
    for (; made < 300; made++) {
      yield frame;
      await Promise.resolve();
    }
  }
  const { loopback, ends } = serveFrames(frames);
  await using server = loopback;
  const response = await fetch(server.url);
  await until(() => made === 300);
  assert.deepEqual(ends, [], "nothing of the end was handed over");
  const { text, whole } = await readAll(response);
  assert.equal(text.length, 300 * frame.length);
  assert.ok(whole);
  assert.deepEqual(ends, [true]);
});

Deno.test("sseResponse hears of a client that leaves in a silence, and gives the source up", async () => {
  const clock = createFakeClock();
  let returned = false;
  const leave = Promise.withResolvers<void>();
  async function* frames(): AsyncGenerator<string> {
    try {
      yield dataFrame(1);
      await leave.promise;
      yield dataFrame(2);
    } finally {
      returned = true;
    }
  }
  const { loopback, ends, cancels } = serveFrames(frames, { clock });
  await using server = loopback;
  const client = new AbortController();
  const response = await fetch(server.url, { signal: client.signal });
  const reader = response.body!.getReader();
  await reader.read();
  await clock.untilSleeping(1);
  client.abort();
  await assert.rejects(reader.read());
  await until(() => cancels.length === 1);
  assert.deepEqual(ends, [false]);
  await until(() => clock.sleeping === 0);
  leave.resolve();
  await until(() => returned);
});

Deno.test("sseResponse hears of a client that leaves between an error and the break", async () => {
  const clock = createFakeClock();
  const { loopback, ends, cancels } = serveFrames(() => failingAfterOne(new Error("inner")), { clock });
  await using server = loopback;
  const client = new AbortController();
  const response = await fetch(server.url, { signal: client.signal });
  const reading = readAll(response);
  await clock.untilSleeping(1);
  client.abort();
  assert.equal((await reading).whole, false);
  await until(() => cancels.length === 1 && clock.sleeping === 0);
  assert.deepEqual(ends, [false]);
});
