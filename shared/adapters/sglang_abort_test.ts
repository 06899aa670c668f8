import assert from "node:assert/strict";
import { createFakeClock } from "../../tests/fixtures/fake_clock.ts";
import { createListLogger, type ListLogger } from "../../tests/fixtures/list_logger.ts";
import { createScriptedFetch, type Responder, type SentRequest } from "../../tests/fixtures/scripted_fetch.ts";
import { abortOnWorkers } from "./sglang_abort.ts";

/** Aborts "rid" at http://router; what was sent and logged. */
async function abort(respond: Responder): Promise<{ sent: SentRequest[]; logger: ListLogger }> {
  const clock = createFakeClock();
  const logger = createListLogger();
  const { fetch, requests } = createScriptedFetch(respond);
  const headers = new Headers({ authorization: "Bearer secret" });
  let over = false;
  const aborting = abortOnWorkers("rid", { url: "http://router", headers, clock, logger, fetch }).then(() =>
    over = true
  );
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
