import assert from "node:assert/strict";
import { Hono } from "hono";
import { until } from "../../tests/fixtures/engine_client.ts";
import { type Loopback, serveLoopback } from "../../tests/fixtures/loopback.ts";
import { VerbatimError } from "../core/errors.ts";
import { type ClientWatch, watchClient } from "./client_signal.ts";

/** A server that answers as told, and the watches it made. */
function serveWatched(
  answer: (watch: ClientWatch) => Response | Promise<Response>,
): { server: Loopback; watches: ClientWatch[] } {
  const watches: ClientWatch[] = [];
  const app = new Hono();
  app.all("/", (context) => {
    const watch = watchClient(context);
    watches.push(watch);
    return answer(watch);
  });
  return { server: serveLoopback((request, info) => app.fetch(request, info)), watches };
}

Deno.test("watchClient keeps still for an answer that goes out whole, and settles true", async () => {
  const settled: Promise<boolean>[] = [];
  const { server: loopback, watches } = serveWatched((watch) => {
    settled.push(watch.settle());
    return new Response("x".repeat(100_000));
  });
  await using server = loopback;
  assert.equal((await (await fetch(server.url)).text()).length, 100_000);
  assert.equal((await (await fetch(server.url, { method: "POST", body: "a body" })).text()).length, 100_000);
  assert.deepEqual(await Promise.all(settled), [true, true]);
  assert.deepEqual(watches.map((watch) => watch.signal.aborted), [false, false]);
});

Deno.test("watchClient tells of a client that leaves before the answer, and settles false", async () => {
  const answer = Promise.withResolvers<void>();
  const settled: Promise<boolean>[] = [];
  const { server: loopback, watches } = serveWatched(async (watch) => {
    await answer.promise;
    settled.push(watch.settle());
    return new Response("late");
  });
  await using server = loopback;
  const client = new AbortController();
  const asked = fetch(server.url, { signal: client.signal }).catch(() => null);
  await until(() => watches.length === 1);
  assert.equal(watches[0]!.signal.aborted, false);
  client.abort();
  await asked;
  await until(() => watches[0]!.signal.aborted);
  const reason: unknown = watches[0]!.signal.reason;
  assert.ok(reason instanceof VerbatimError);
  assert.equal(reason.code, "client_gone");
  answer.resolve();
  await until(() => settled.length === 1);
  assert.equal(await settled[0], false);
});

Deno.test("watchClient tells of a client that leaves in the middle of a stream, and settles false", async () => {
  const settled: Promise<boolean>[] = [];
  const { server: loopback, watches } = serveWatched((watch) => {
    settled.push(watch.settle());
    return new Response(
      new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("first")) }),
    );
  });
  await using server = loopback;
  const client = new AbortController();
  const response = await fetch(server.url, { signal: client.signal });
  await response.body!.getReader().read();
  client.abort();
  await until(() => watches[0]!.signal.aborted);
  assert.equal(await settled[0], false);
});

Deno.test("watchClient knows a client that was gone before it looked", async () => {
  const app = new Hono();
  app.get("/", async (context) => {
    const watch = watchClient(context);
    assert.ok(watch.signal.aborted);
    return context.json(await watch.settle());
  });
  const response = await app.request(new Request("http://127.0.0.1/", { signal: AbortSignal.abort() }));
  assert.equal(await response.json(), false);
});

Deno.test("watchClient on a host that does not tell counts an answer handed over as sent", async () => {
  const app = new Hono();
  app.get("/", async (context) => context.json(await watchClient(context).settle()));
  assert.equal(await (await app.request("/")).json(), true);
  assert.equal(await (await app.request("/", {}, { completed: Promise.reject(new Error("reset")) })).json(), false);
});
