/** The engine on a socket: disconnects, cuts, refusals and death as a client sees them. */

import assert from "node:assert/strict";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { type GenerateReply, readFrames, until } from "../../tests/fixtures/engine_client.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./embedded_engine.ts";
import type { Fault } from "./fault.ts";
import { type ServedEngine, serveEmbeddedEngine } from "./serve_embedded_engine.ts";

const BODY = { input_ids: [65, 66], stream: true, sampling_params: { max_new_tokens: 5, ignore_eos: true } };

interface Served extends AsyncDisposable {
  readonly engine: EmbeddedEngine;
  readonly served: ServedEngine;
  post(body: unknown, signal?: AbortSignal): Promise<Response>;
}

function serve(fault?: Fault): Served {
  const engine = createEmbeddedEngine({ tokenizer: byteTokenizer(), modelName: "m", maxContextTokens: 512 });
  if (fault !== undefined) engine.faults.add({ fault });
  const served = serveEmbeddedEngine(engine);
  return {
    engine,
    served,
    post: (body, signal) =>
      fetch(`${served.url}/generate`, {
        method: "POST",
        body: JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      }),
    [Symbol.asyncDispose]: () => served.close(),
  };
}

async function framesBeforeBreak(response: Response): Promise<number> {
  const seen: (GenerateReply | "[DONE]")[] = [];
  await assert.rejects(async () => {
    for await (const frame of readFrames(response)) seen.push(frame);
  });
  assert.equal(seen.includes("[DONE]"), false);
  return seen.length;
}

Deno.test("serveEmbeddedEngine answers whole and streamed", async () => {
  await using one = serve();
  assert.match(one.served.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  const whole = await (await one.post({ ...BODY, stream: false })).json();
  assert.equal(whole.output_ids.length, 5);
  const text = await (await one.post(BODY)).text();
  assert.ok(text.endsWith("data: [DONE]\n\n"));
});

Deno.test("serveEmbeddedEngine aborts what a client left, and not a zombie", async () => {
  for (const kind of ["hang", "zombie"] as const) {
    for (const streams of [true, false]) {
      await using one = serve({ kind, afterTokens: 2 });
      const gone = new AbortController();
      const response = one.post({ ...BODY, rid: "r", stream: streams }, gone.signal);
      response.catch(() => {});
      if (streams) await (await response).body!.getReader().read();
      await until(() => one.engine.running === 1);
      gone.abort();
      if (kind === "zombie") {
        await (await fetch(`${one.served.url}/v1/loads`)).json();
        assert.equal(one.engine.running, 1);
        await fetch(`${one.served.url}/abort_request`, { method: "POST", body: '{"rid":"r"}' });
      }
      await until(() => one.engine.running === 0);
    }
  }
});

Deno.test("serveEmbeddedEngine sends the frames before a cut, then breaks the connection", async () => {
  await using one = serve({ kind: "cut", afterTokens: 3 });
  assert.equal(await framesBeforeBreak(await one.post(BODY)), 3);
  const whole = await one.post({ ...BODY, stream: false });
  assert.equal(whole.status, 200);
  await assert.rejects(whole.text());
});

Deno.test("serveEmbeddedEngine refuses connections and listens again on the same port", async () => {
  await using one = serve({ kind: "hang", afterTokens: 1 });
  const response = await one.post(BODY);
  await one.served.refuse();
  await framesBeforeBreak(response);
  await assert.rejects(one.post(BODY));
  one.engine.faults.clear();
  one.served.listen();
  assert.equal((await (await one.post({ ...BODY, stream: false })).json()).output_ids.length, 5);
});

Deno.test("serveEmbeddedEngine stops listening when the engine dies, and stays down", async () => {
  await using one = serve({ kind: "die", afterTokens: 1 });
  await assert.rejects(async () => await (await one.post(BODY)).text());
  await until(() => one.engine.death.aborted);
  await assert.rejects(one.post(BODY));
  one.served.listen();
  await assert.rejects(one.post(BODY));
});
