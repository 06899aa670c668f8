import assert from "node:assert/strict";
import { serveLoopback } from "../../../tests/fixtures/loopback.ts";
import { LeavableCall } from "./leavable_call.ts";

const REASON = new Error("enough");
const encoder = new TextEncoder();

/** A server that sends "a" and, once it is let go on, "b"; whether it saw its client leave. */
function halting() {
  const gate = Promise.withResolvers<void>();
  const seen = { left: false, ended: false };
  const server = serveLoopback(() => {
    let sent = 0;
    return new Response(
      new ReadableStream<Uint8Array<ArrayBuffer>>({
        async pull(controller) {
          if (sent++ === 0) return controller.enqueue(encoder.encode("a"));
          await gate.promise;
          if (seen.left) return;
          controller.enqueue(encoder.encode("b"));
          controller.close();
          seen.ended = true;
        },
        cancel() {
          seen.left = true;
        },
      }, { highWaterMark: 0 }),
    );
  });
  return { server, seen, goOn: () => gate.resolve() };
}

function callOf(url: string, stop: AbortSignal): LeavableCall {
  return new LeavableCall((signal) => fetch(url, { signal }), stop);
}

Deno.test("a call that is left in its stream goes on to its end", async () => {
  const { server, seen, goOn } = halting();
  await using _server = server;
  const stop = new AbortController();
  const call = callOf(server.url, stop.signal);
  const got: string[] = [];
  await assert.rejects(async () => {
    for await (const bytes of call.bytes()) {
      got.push(new TextDecoder().decode(bytes));
      stop.abort(REASON);
    }
  }, REASON);
  assert.deepEqual(got, ["a"]);
  let over = false;
  const end = call.over().then(() => over = true);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual([over, seen.left], [false, false]);
  goOn();
  await end;
  assert.deepEqual(seen, { left: false, ended: true });
});

Deno.test("a call that is left before its head or in its text goes on, and ends when it is hung up", async () => {
  for (const read of ["response", "text"] as const) {
    const { server, goOn } = halting();
    await using _server = server;
    const stop = new AbortController();
    const call = callOf(server.url, stop.signal);
    if (read === "text") await call.response();
    const failing = assert.rejects(call[read](), REASON);
    stop.abort(REASON);
    await failing;
    const end = call.over();
    call.hangUp();
    await end;
    goOn();
  }
});

Deno.test("a call is read whole, as text or as bytes, and failures are its own", async () => {
  await using server = serveLoopback(() => new Response("whole"));
  const never = new AbortController().signal;
  assert.equal(await callOf(server.url, never).text(), "whole");
  let text = "";
  const call = callOf(server.url, never);
  for await (const bytes of call.bytes()) text += new TextDecoder().decode(bytes);
  assert.equal(text, "whole");
  await call.over();
  call.hangUp();
  const refused = new LeavableCall(() => Promise.reject(new TypeError("refused")), never);
  await assert.rejects(refused.text(), { message: "refused" });
  await refused.over();
});
