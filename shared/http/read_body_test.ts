import assert from "node:assert/strict";
import fc from "fast-check";
import { Hono } from "hono";
import { z } from "zod";
import { serveLoopback } from "../../tests/fixtures/loopback.ts";
import { VerbatimError } from "../core/errors.ts";
import { errorResponse, toVerbatimError } from "./error_response.ts";
import { readBody, readJson } from "./read_body.ts";

const encoder = new TextEncoder();

function appOf(options: { maxBytes: number; emptyIsObject?: boolean }): Hono {
  const app = new Hono();
  app.post("/", async (context) => context.json({ read: await readJson(context, options) }));
  app.onError((thrown, context) => errorResponse(context, toVerbatimError(thrown)));
  return app;
}

/** A body that comes in pieces, without a length. */
function pieces(parts: readonly Uint8Array<ArrayBuffer>[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return ReadableStream.from(parts);
}

/** What the app answers: its status and body. */
async function post(app: Hono, body: BodyInit | null, headers: Record<string, string> = {}): Promise<
  { status: number; answer: { read?: unknown; error?: { code: string; message: string; details?: unknown } } }
> {
  const response = await app.request("/", { method: "POST", body, headers });
  return { status: response.status, answer: await response.json() };
}

Deno.test("readJson reads JSON from any cut of its bytes, whatever its content type", async () => {
  const app = appOf({ maxBytes: 100_000 });
  await fc.assert(fc.asyncProperty(fc.jsonValue(), fc.array(fc.nat()), async (value, cuts) => {
    const bytes = encoder.encode(JSON.stringify(value));
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let from = 0;
    for (const cut of cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b)) {
      parts.push(bytes.slice(from, cut));
      from = cut;
    }
    const { status, answer } = await post(app, pieces([...parts, bytes.slice(from)]), { "content-type": "text/odd" });
    assert.equal(status, 200);
    assert.deepEqual(answer.read, JSON.parse(JSON.stringify(value)));
  }));
});

Deno.test("readJson refuses what exceeds the limit, and takes what just fits", async () => {
  const app = appOf({ maxBytes: 12 });
  const fits = encoder.encode('"0123456789"');
  const exceeds = encoder.encode('"01234567890"');
  assert.equal((await post(app, fits)).status, 200);
  assert.equal((await post(app, pieces([fits.slice(0, 5), fits.slice(5)]))).status, 200);
  const declared = { "content-length": String(exceeds.length) };
  for (const [body, headers] of [[exceeds, declared], [exceeds, {}], [pieces([exceeds]), {}]] as const) {
    const { status, answer } = await post(app, body, headers);
    assert.equal(status, 413);
    assert.equal(answer.error?.code, "body_too_large");
    assert.deepEqual(answer.error?.details, { max_bytes: 12 });
  }
});

Deno.test("readJson reads no further than the limit", async () => {
  let made = 0;
  const endless = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      made++;
      controller.enqueue(new Uint8Array(10));
    },
  }, { highWaterMark: 0 });
  const { status } = await post(appOf({ maxBytes: 95 }), endless);
  assert.equal(status, 413);
  assert.equal(made, 10);
});

Deno.test("readJson answers an oversized upload over a socket", async () => {
  const app = appOf({ maxBytes: 100_000 });
  await using server = serveLoopback((request, info) => app.fetch(request, info));
  for (const body of [new Uint8Array(300_000), pieces([new Uint8Array(90_000), new Uint8Array(90_000)])]) {
    const response = await fetch(server.url, { method: "POST", body });
    assert.equal(response.status, 413);
    assert.equal((await response.json()).error.code, "body_too_large");
  }
  assert.deepEqual(server.errors, []);
});

Deno.test("readJson says client_gone of an upload that breaks off", async () => {
  const broken = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => controller.error(new Error("reset")),
  });
  assert.equal((await post(appOf({ maxBytes: 10 }), broken)).answer.error?.code, "client_gone");
});

Deno.test("readJson refuses bytes that are not UTF-8", async () => {
  for (const bytes of [Uint8Array.of(0x22, 0xff, 0x22), Uint8Array.of(0x22, 0xe2, 0x82, 0x22), Uint8Array.of(0xc3)]) {
    const { status, answer } = await post(appOf({ maxBytes: 10 }), bytes);
    assert.equal(status, 400);
    assert.equal(answer.error?.message, "The body is not UTF-8");
    assert.deepEqual(answer.error?.details, { field: null, reason: "not UTF-8" });
  }
});

Deno.test("readJson says why a body is no JSON without quoting it, to the caller and to the log", async () => {
  const app = new Hono();
  app.post("/", async (context) => {
    try {
      await readJson(context, { maxBytes: 1000 });
    } catch (thrown) {
      assert.ok(thrown instanceof VerbatimError);
      assert.equal(thrown.code, "invalid_request");
      return context.text(`${thrown.message} ${String(thrown.cause)} ${JSON.stringify(thrown.details)}`);
    }
    return context.text("read");
  });
  const bodies = [
    "xyzzy",
    '{"key": xyzzy}',
    '{"key": "xyzzy" "more": 1}',
    '{"a": "xyzzy-xyzzy-xyzzy", "b": xyzzy, "c": "xyzzy-xyzzy-xyzzy-xyzzy"}',
    `xyzzy${"xyzzy".repeat(30)}`,
    `${JSON.stringify("xyzzy")} xyzzy`,
    '"xyzzy',
    '{"xyzzy": 1,}',
    "{xyzzy: 1}",
    '{"xyzzy": "\t"}',
    '"xyzzy" is not valid JSON',
    "",
  ];
  for (const body of bodies) {
    const said = await (await app.request("/", { method: "POST", body })).text();
    assert.match(said, /^The body is not JSON: [A-Z][^]+ undefined \{"field":null,"reason":"not JSON"\}$/, body);
    assert.ok(!said.includes("yz"), said);
  }
});

Deno.test("readJson takes an empty body for an object only where that is said", async () => {
  for (const body of [null, ""]) {
    assert.deepEqual((await post(appOf({ maxBytes: 10, emptyIsObject: true }), body)).answer.read, {});
    assert.equal((await post(appOf({ maxBytes: 10 }), body)).answer.error?.code, "invalid_request");
  }
});

Deno.test("readBody checks what it read", async () => {
  const app = new Hono();
  app.post(
    "/",
    async (context) => context.json(await readBody(context, z.strictObject({ n: z.int() }), { maxBytes: 50 })),
  );
  app.onError((thrown, context) => errorResponse(context, toVerbatimError(thrown)));
  assert.deepEqual(await (await app.request("/", { method: "POST", body: '{"n":1}' })).json(), { n: 1 });
  const refused = await (await app.request("/", { method: "POST", body: '{"n":1,"m":2}' })).json();
  assert.equal(refused.error.code, "unknown_field");
});
