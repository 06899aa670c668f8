import assert from "node:assert/strict";
import { byteTokenizer } from "../../../tests/fixtures/byte_tokenizer.ts";
import { createFakeClock, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../../tests/fixtures/list_logger.ts";
import { serveLoopback } from "../../../tests/fixtures/loopback.ts";
import { createScriptedFetch, type Responder, type SentRequest } from "../../../tests/fixtures/scripted_fetch.ts";
import { createEmbeddedEngine } from "../../engine/embedded_engine.ts";
import { serveEmbeddedEngine } from "../../engine/serve_embedded_engine.ts";
import type { EngineControl } from "../../ports/engine_control.ts";
import { createSglangControl } from "./sglang_control.ts";
import { type EnginePlace, SglangWorkers } from "./sglang_workers.ts";
import { systemClock } from "../system_clock.ts";

const never = new AbortController().signal;
const ROUTER: EnginePlace = { type: "router", url: "http://router" };
const TWO: EnginePlace = { type: "workers", urls: ["http://a", "http://b"] };

interface World {
  readonly control: EngineControl;
  readonly workers: SglangWorkers;
  readonly clock: FakeClock;
  readonly requests: SentRequest[];
}

function worldOf(place: EnginePlace, respond: Responder, apiKey?: string): World {
  const clock = createFakeClock();
  const { fetch, requests } = createScriptedFetch(respond);
  const workers = new SglangWorkers({ place, apiKey, clock, fetch });
  return { control: createSglangControl({ workers, logger: createListLogger() }), workers, clock, requests };
}

Deno.test("workers asks each worker that a router lists for its model and its load", async () => {
  const { control, requests } = worldOf(ROUTER, ({ url }) => {
    const { host, pathname } = new URL(url);
    if (host === "router") {
      const workers = [{ url: "http://a/", is_healthy: true }, { url: "http://b", is_healthy: false }, { id: "odd" }];
      return Response.json({ workers, total: 3 });
    }
    if (pathname === "/model_info") return Response.json({ model_path: "m", weight_version: host });
    if (host === "a" && pathname === "/v1/loads") {
      const rank = { num_running_reqs: 2, num_waiting_reqs: 1 };
      return Response.json({ loads: [rank, rank] });
    }
    if (host === "b" && pathname === "/get_load") return Response.json([{ num_reqs: 5, num_waiting_reqs: 2 }]);
    return new Response(null, { status: 404 });
  }, "secret");
  const common = { reachable: true, reason: null, modelPath: "m", circuit: "unknown", inFlight: null };
  assert.deepEqual(await control.workers(never), [
    { ...common, url: "http://a", healthy: true, weightVersion: "a", running: 4, queued: 2 },
    { ...common, url: "http://b", healthy: false, weightVersion: "b", running: 3, queued: 2 },
  ]);
  assert.ok(requests.every(({ headers }) => headers.get("authorization") === "Bearer secret"));
});

Deno.test("workers tells a worker that answers nothing as not reachable, and one that says little as far as it does", async () => {
  const { control } = worldOf(TWO, ({ url }) => {
    if (url.startsWith("http://a")) throw new TypeError("connection refused");
    return url.endsWith("/model_info") ? Response.json({}) : new Response("<html>");
  });
  const [dead, terse] = await control.workers(never);
  assert.deepEqual([dead?.reachable, dead?.reason, dead?.running], [false, "connection refused", null]);
  const { reachable, reason, modelPath, weightVersion, running, queued, healthy } = terse!;
  assert.deepEqual({ reachable, reason }, { reachable: true, reason: null });
  assert.deepEqual([modelPath, weightVersion, running, queued, healthy], [null, null, null, null, null]);
});

Deno.test("a router's list is kept for some seconds", async () => {
  const { control, clock, requests } = worldOf(ROUTER, ({ url }) => {
    return url === "http://router/workers" ? Response.json({ workers: [{ url: "http://a" }] }) : Response.json({});
  });
  const lists = () => requests.filter(({ url }) => url.endsWith("/workers")).length;
  await control.workers(never);
  await control.act("flush", {}, never);
  assert.equal(lists(), 1);
  await clock.advance(5000);
  await control.workers(never);
  assert.equal(lists(), 2);
});

Deno.test("workers and act fail as engine_unavailable where the workers can't be listed", async () => {
  const answers: Responder[] = [
    () => Promise.reject(new TypeError("refused")),
    () => new Response("", { status: 503 }),
  ];
  for (const answer of answers) {
    const { control } = worldOf(ROUTER, answer);
    await assert.rejects(control.workers(never), { code: "engine_unavailable" });
    await assert.rejects(control.act("pause", {}, never), { code: "engine_unavailable" });
  }
});

Deno.test("act sends every action to every worker, with SGLang's own bodies", async () => {
  const { control, requests } = worldOf(TWO, () => Response.json({ success: true, message: "done" }));
  const cases = [
    ["pause", { mode: "retract" }, "/pause_generation", { mode: "retract" }],
    ["continue", {}, "/continue_generation", {}],
    ["update_from_disk", { model_path: "p" }, "/update_weights_from_disk", { model_path: "p" }],
    ["set_version", { new_version: "7" }, "/update_weight_version", { new_version: "7" }],
    ["flush", { timeout: 5 }, "/flush_cache?timeout=5", { timeout: 5 }],
    ["abort_all", {}, "/abort_request", { rid: "", abort_all: true }],
    ["release_memory", { tags: ["weights"] }, "/release_memory_occupation", { tags: ["weights"] }],
    ["resume_memory", {}, "/resume_memory_occupation", {}],
  ] as const;
  for (const [action, body, path, sent] of cases) {
    requests.length = 0;
    const results = await control.act(action, body, never);
    const good = { ok: true, status: 200, message: "done" };
    assert.deepEqual(results, [{ url: "http://a", ...good }, { url: "http://b", ...good }]);
    const posted = requests.filter(({ method }) => method === "POST");
    assert.deepEqual(posted.map(({ url }) => url), [`http://a${path}`, `http://b${path}`]);
    assert.deepEqual(JSON.parse(posted[0]!.body), sent);
  }
});

Deno.test("act waits for a flush as long as the flush may wait, and then as for any other", async () => {
  const { control } = worldOf(TWO, () => Response.json({ success: true }));
  const { timeout } = AbortSignal;
  const timeoutsMs: number[] = [];
  try {
    AbortSignal.timeout = (ms) => {
      timeoutsMs.push(ms);
      return never;
    };
    await control.act("flush", { timeout: 600 }, never);
    await control.act("flush", {}, never);
  } finally {
    AbortSignal.timeout = timeout;
  }
  assert.deepEqual(timeoutsMs, [720_000, 720_000, 120_000, 120_000]);
});

Deno.test("weights without a name of their own leave what runs meanwhile in doubt", async () => {
  const { control, workers } = worldOf(
    TWO,
    ({ url }) => Response.json(url.endsWith("/model_info") ? { weight_version: "1" } : { success: true }),
  );
  await workers.learnVersions(never);
  for (const [named, unchanged] of [[{}, false], [{ weight_version: "1" }, false], [{ weight_version: "2" }, true]]) {
    const watch = workers.versions.watch("http://a");
    await control.act("update_from_disk", { model_path: "p", ...Object(named) }, never);
    assert.equal(watch.unchanged, unchanged, JSON.stringify(named));
    assert.equal(workers.versions.watch("http://a").before, "1");
  }
});

Deno.test("act says of each worker what came of it", async () => {
  const { control } = worldOf(
    { type: "workers", urls: ["http://a", "http://b", "http://c", "http://d"] },
    ({ url }) => {
      if (url.startsWith("http://a")) throw new TypeError("connection refused");
      if (url.startsWith("http://b")) {
        return Response.json({ success: false, message: "flush failed" }, {
          status: 400,
        });
      }
      if (url.startsWith("http://c")) return Response.json({ success: false, message: "no such path" });
      return new Response("Cache flushed.\n");
    },
  );
  assert.deepEqual(await control.act("flush", {}, never), [
    { url: "http://a", ok: false, status: null, message: "connection refused" },
    { url: "http://b", ok: false, status: 400, message: "flush failed" },
    { url: "http://c", ok: false, status: 200, message: "no such path" },
    { url: "http://d", ok: true, status: 200, message: "Cache flushed." },
  ]);
});

Deno.test("a pause marks its workers until they go on, but for one that refused it", async () => {
  const { control, workers, clock } = worldOf(TWO, ({ url }) => {
    return new Response(null, { status: url === "http://b/pause_generation" ? 403 : 200 });
  });
  const still = async (url: string): Promise<boolean> => {
    const looked = new AbortController();
    let held = true;
    const wait = workers.pauses.of(url).lifted(looked.signal).then(() => held = false, () => {});
    await clock.advance(0);
    looked.abort();
    await wait;
    return held;
  };
  await control.act("pause", {}, never);
  assert.deepEqual([await still("http://a"), await still("http://b")], [true, false]);
  await control.act("update_from_disk", { model_path: "p" }, never);
  assert.equal(await still("http://a"), true);
  await control.act("continue", {}, never);
  assert.equal(await still("http://a"), false);
});

Deno.test("workers and act speak to a worker on a socket as to SGLang, with and without a router before it", async () => {
  const embedded = createEmbeddedEngine({
    tokenizer: byteTokenizer(),
    modelName: "m",
    maxContextTokens: 64,
    weightVersion: "1",
    apiKey: "secret",
  });
  const served = serveEmbeddedEngine(embedded);
  await using router = serveLoopback(({ url }) =>
    url.endsWith("/workers")
      ? Response.json({ workers: [{ url: served.url, is_healthy: true }] })
      : new Response(null, { status: 404 })
  );
  try {
    const places: [EnginePlace, boolean | null][] = [
      [{ type: "router", url: served.url }, null],
      [{ type: "router", url: router.url }, true],
      [{ type: "workers", urls: [served.url] }, null],
    ];
    for (const [place, healthy] of places) {
      const workers = new SglangWorkers({ place, apiKey: "secret", clock: systemClock });
      const control = createSglangControl({ workers, logger: createListLogger() });
      const [before] = await control.workers(never);
      assert.deepEqual([before?.url, before?.healthy], [served.url, healthy]);
      assert.deepEqual([before?.reachable, before?.modelPath, before?.running, before?.queued], [true, "m", 0, 0]);
      const next = `${before?.weightVersion}+`;
      for (const action of ["pause", "continue", "flush", "abort_all"] as const) {
        const [result] = await control.act(action, {}, never);
        assert.deepEqual([result?.ok, result?.status], [true, 200], action);
      }
      const [updated] = await control.act("update_from_disk", { model_path: "m", weight_version: next }, never);
      assert.equal(updated?.ok, true, updated?.message ?? "");
      assert.equal((await control.workers(never))[0]?.weightVersion, next);
    }
    const denied = new SglangWorkers({ place: { type: "workers", urls: [served.url] }, clock: systemClock });
    const [worker] = await createSglangControl({ workers: denied, logger: createListLogger() }).workers(never);
    assert.deepEqual([worker?.reachable, worker?.reason], [false, "/model_info answers 401"]);
  } finally {
    await served.close();
  }
});
