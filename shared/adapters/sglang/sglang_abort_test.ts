import assert from "node:assert/strict";
import { createFakeClock, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger, type ListLogger } from "../../../tests/fixtures/list_logger.ts";
import { createScriptedFetch, type Responder, type SentRequest } from "../../../tests/fixtures/scripted_fetch.ts";
import { abortOnWorkers } from "./sglang_abort.ts";
import { SglangWorkers } from "./sglang_workers.ts";

/** Aborts "rid" behind http://router, whose call is not to be seen; what was sent and logged. */
async function abort(respond: Responder): Promise<{ sent: SentRequest[]; logger: ListLogger }> {
  const clock = createFakeClock();
  const logger = createListLogger();
  const { fetch, requests } = createScriptedFetch(respond);
  const workers = new SglangWorkers({
    place: { type: "router", url: "http://router" },
    apiKey: "secret",
    clock,
    fetch,
  });
  let over = false;
  const aborting = abortOnWorkers("rid", { workers, url: null, over: null, clock, logger }).then(() => over = true);
  for (let step = 0; !over && step < 100; step++) await clock.advance(250);
  await aborting;
  assert.equal(clock.sleeping, 0);
  return { sent: requests, logger };
}

function told(sent: readonly SentRequest[]): string[] {
  return sent.filter(({ method }) => method === "POST").map(({ url }) => url);
}

Deno.test("abortOnWorkers tells each worker that the router lists, more than once", async () => {
  const workers = [{ url: "http://a:1" }, { id: "no url" }, { url: "http://b:2/" }, null];
  const { sent, logger } = await abort(({ url }) =>
    url === "http://router/workers" ? Response.json({ workers, total: 4 }) : new Response(null)
  );
  assert.deepEqual(told(sent).sort(), [
    ...Array(3).fill("http://a:1/abort_request"),
    ...Array(3).fill("http://b:2/abort_request"),
  ]);
  for (const { method, body, headers } of sent) {
    assert.equal(headers.get("authorization"), "Bearer secret");
    assert.equal(body, method === "POST" ? '{"rid":"rid"}' : "");
  }
  assert.deepEqual(logger.lines, []);
});

Deno.test("abortOnWorkers tells the one it knows where no workers are listed", async () => {
  const lists: Responder[] = [
    () => new Response("{}", { status: 404 }),
    () => Response.json({ workers: [] }),
    () => Response.json([]),
    () => new Response("<html>"),
    () => Promise.reject(new TypeError("reset")),
  ];
  for (const list of lists) {
    const { sent } = await abort((request, signal) =>
      request.url.endsWith("/workers") ? list(request, signal) : new Response(null)
    );
    assert.deepEqual(told(sent), Array(3).fill("http://router/abort_request"));
  }
});

Deno.test("abortOnWorkers tells the others where one worker is dead or refuses, and logs that", async () => {
  const { sent, logger } = await abort(({ url }) => {
    if (url.endsWith("/workers")) {
      return Response.json({ workers: ["dead", "odd", "good"].map((name) => ({ url: `http://${name}` })) });
    }
    if (url.startsWith("http://dead")) throw new TypeError("connection refused");
    return new Response(null, { status: url.startsWith("http://odd") ? 404 : 200 });
  });
  assert.equal(told(sent).filter((url) => url.startsWith("http://good/")).length, 3);
  assert.equal(logger.lines.length, 6);
  assert.deepEqual(new Set(logger.lines.map(({ fields }) => fields.url)), new Set(["http://dead", "http://odd"]));
});

/** Aborts "rid" on http://a, one of two workers, until its call has ended. */
function abortOf(
  over: Promise<void>,
): { clock: FakeClock; logger: ListLogger; sent: SentRequest[]; done: Promise<void> } {
  const clock = createFakeClock();
  const logger = createListLogger();
  const { fetch, requests } = createScriptedFetch(() => new Response(null));
  const workers = new SglangWorkers({ place: { type: "workers", urls: ["http://a", "http://b"] }, clock, fetch });
  const done = abortOnWorkers("rid", { workers, url: "http://a", over, clock, logger });
  return { clock, logger, sent: requests, done };
}

Deno.test("abortOnWorkers tells the one worker that serves the request, until its call has ended", async () => {
  const call = Promise.withResolvers<void>();
  const { clock, logger, sent, done } = abortOf(call.promise);
  await clock.untilSleeping(1);
  assert.deepEqual(told(sent), ["http://a/abort_request"]);
  // 250, 500 and 1000 ms later.
  for (const ms of [250, 500, 1000]) {
    await clock.advance(ms - 1);
    const before = sent.length;
    await clock.advance(1);
    assert.equal(sent.length, before + 1);
  }
  call.resolve();
  await done;
  assert.equal(told(sent).length, 4);
  assert.ok(sent.every(({ url }) => url === "http://a/abort_request"));
  assert.deepEqual([clock.sleeping, logger.lines], [0, []]);
});

Deno.test("abortOnWorkers tells once where the call has ended meanwhile", async () => {
  const { clock, sent, done } = abortOf(Promise.resolve());
  await done;
  assert.deepEqual([told(sent).length, clock.sleeping], [1, 0]);
});

Deno.test("abortOnWorkers gives up a call that does not end, and logs that", async () => {
  const { clock, logger, sent, done } = abortOf(new Promise(() => {}));
  const startMs = clock.now();
  let over = false;
  const ended = done.then(() => over = true);
  for (let step = 0; !over && step < 200; step++) await clock.advance(250);
  await ended;
  assert.ok(clock.now() - startMs <= 20_000 && told(sent).length < 12);
  assert.deepEqual(logger.lines.map(({ level }) => level), ["warn"]);
});
