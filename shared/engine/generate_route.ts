/** `/generate`: bodies in, answers or frames out, errors in SGLang's wrappings. It computes nothing. */

import type { Context } from "hono";
import type { EngineCore } from "./engine_core.ts";
import { EngineRefusal } from "./engine_refusal.ts";
import type { EngineRequest } from "./engine_request.ts";
import { type GenerateBody, parseGenerateBody } from "./generate_body.ts";
import { answerBody, bodyText, frameBody } from "./response_body.ts";
import { DONE_FRAME, sseFrame, sseStream } from "./sse.ts";

const JSON_TYPE = { "content-type": "application/json" } as const;
const SSE_TYPE = { "content-type": "text/event-stream; charset=utf-8" } as const;

/** Answers one call. */
export async function generateRoute(context: Context, core: EngineCore): Promise<Response> {
  const signal = context.req.raw.signal;
  let parsed: GenerateBody | null = null;
  let stream = false;
  try {
    const body = await readJson(context);
    stream = typeof body === "object" && body !== null && "stream" in body && body.stream === true;
    parsed = parseGenerateBody(core.options.flatTopLogprobs === false ? withoutFlatForm(body) : body, newRid);
    await core.scheduler.admitted(signal);
    if (signal.aborted) return new Response(null, { status: 499 });
    for (const rid of [...parsed.groupRids, ...parsed.items.map((item) => item.rid)]) {
      if (core.scheduler.has(rid)) throw new EngineRefusal("value", `Duplicate request ID detected: ${rid}`);
    }
    return await answer(await start(parsed, core), { parsed, core, signal });
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error;
    return refusal(error, { stream, core });
  }
}

/** As a router passes it on, and as an engine reads it that does not know the form. */
function withoutFlatForm(body: unknown): unknown {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  return { ...body, return_flat_raw_top_logprobs: undefined, return_flat_raw_top_logprobs_b64: undefined };
}

/** Checks all prompts, then starts all; a refused one refuses the call. */
async function start(parsed: GenerateBody, core: EngineCore): Promise<EngineRequest[] | Response> {
  for (const rid of parsed.items.map((item) => item.rid)) core.scheduler.hold(rid);
  for (const rid of parsed.groupRids) core.scheduler.hold(rid);
  try {
    const checked = await Promise.all(parsed.items.map((item) => core.check(item)));
    for (const { request } of checked) {
      const http = request.faults.get("http");
      if (http !== null) {
        const headers = { ...http.headers, ...(http.contentType ? { "content-type": http.contentType } : {}) };
        return new Response(http.body ?? null, { status: http.status, headers });
      }
      const abort = request.faults.get("abort");
      if (abort?.by === "validation") throw new EngineRefusal("value", abort.message ?? "The request is not valid.");
    }
    for (const { request, objection } of checked) {
      // Several samples of one prompt: SGLang fills the cache with it first.
      if (parsed.samples > 1) {
        core.scheduler.cache.insert(request.generation.input.item.cacheKey, request.generation.input.prompt);
      }
      if (objection === null) core.scheduler.start(request);
      else request.end(objection);
    }
    return checked.map(({ request }) => request);
  } finally {
    for (const rid of parsed.items.map((item) => item.rid)) core.scheduler.release(rid);
    for (const rid of parsed.groupRids) core.scheduler.release(rid);
  }
}

async function answer(
  requests: EngineRequest[] | Response,
  call: { parsed: GenerateBody; core: EngineCore; signal: AbortSignal },
): Promise<Response> {
  if (requests instanceof Response) return requests;
  const { parsed, core, signal } = call;
  const gone = (): void => {
    for (const request of requests) clientGone(request, { core, background: parsed.background });
  };
  if (signal.aborted) gone();
  if (parsed.stream) {
    const sources = requests.map((request, index) =>
      frames(request, { index: parsed.single ? null : index, core, broke: gone })
    );
    return new Response(sseStream(merge(sources), gone), { headers: SSE_TYPE });
  }
  signal.addEventListener("abort", gone, { once: true });
  try {
    await untilDeath(core, Promise.all(requests.map((request) => request.reaches(Infinity))));
  } finally {
    signal.removeEventListener("abort", gone);
  }
  for (const { finish } of requests) {
    if (finish?.type !== "abort" || typeof finish.status_code !== "number") continue;
    const { status_code: status, message } = finish;
    if (status === 400) return Response.json({ error: { message } }, { status });
    return flatError(status, { message, type: String(status) });
  }
  const bodies = requests.map((request) => answerBody(request, core.now()));
  const text = bodyText(parsed.single ? bodies[0] : bodies);
  if (requests.some((request) => request.faults.get("cut") !== null)) return broken(text.slice(0, text.length / 2));
  return new Response(text, { headers: JSON_TYPE });
}

async function* frames(
  request: EngineRequest,
  call: { index: number | null; core: EngineCore; broke: () => void },
): AsyncGenerator<string> {
  const { index, core, broke } = call;
  const { generation, faults } = request;
  const { incremental = false, streamInterval = 1 } = core.options;
  const interval = Math.max(1, generation.input.options.streamInterval ?? streamInterval);
  const cut = faults.get("cut");
  let sent = 0;
  let ended = false;
  for (let first = true;; first = false) {
    if (cut !== null && sent >= cut.afterTokens) {
      broke();
      throw new Error("The connection was cut, as planned.");
    }
    if (ended) return;
    let to = sent === 0 ? 1 : sent + interval;
    if (cut !== null) to = Math.min(to, cut.afterTokens);
    await untilDeath(core, request.reaches(to));
    to = Math.min(to, generation.outputIds.length);
    const body = frameBody(request, {
      from: incremental ? sent : 0,
      to,
      textFrom: incremental ? generation.text.shown(sent).length : 0,
      withInput: first || !incremental,
    }, core.now());
    sent = to;
    ended = request.finish !== null && sent === generation.outputIds.length;
    yield sseFrame(index === null ? body : { ...body, index });
  }
}

/** Frames of several requests as they come, then the last frame. */
async function* merge(sources: readonly AsyncGenerator<string>[]): AsyncGenerator<string> {
  const advance = (i: number): Promise<{ i: number; result: IteratorResult<string> }> => {
    const step = sources[i]!.next().then((result) => ({ i, result }));
    // When one source breaks the stream, nobody waits for the others any more.
    step.catch(() => {});
    return step;
  };
  const next = new Map(sources.map((_, i) => [i, advance(i)]));
  while (next.size > 0) {
    const { i, result } = await Promise.race(next.values());
    if (result.done) {
      next.delete(i);
      continue;
    }
    yield result.value;
    next.set(i, advance(i));
  }
  yield DONE_FRAME;
}

function clientGone(request: EngineRequest, options: { core: EngineCore; background: boolean }): void {
  const { core, background } = options;
  const delayMs = core.options.disconnectAbortDelayMs === undefined ? 0 : core.options.disconnectAbortDelayMs;
  if (request.finish !== null) return;
  request.clientGone = true;
  if (background || delayMs === null || request.faults.get("zombie") !== null) return;
  const abort = (): void => {
    if (request.finish === null) core.scheduler.abort({ rid: request.rid, all: false });
  };
  if (delayMs === 0) abort();
  else void core.sleep(delayMs).then(abort);
}

function refusal(error: EngineRefusal, { stream, core }: { stream: boolean; core: EngineCore }): Response {
  if (core.death.signal.aborted) throw new Error("The server is dead.");
  const { message } = error;
  if (error.kind === "body") return flatError(400, { message, type: "Bad Request" });
  if (error.kind === "type") {
    // A stream's headers are out before its first frame is computed: what breaks there breaks the connection.
    return stream ? broken("", SSE_TYPE) : new Response("Internal Server Error", { status: 500 });
  }
  if (!stream) return Response.json({ error: { message } }, { status: 400 });
  const frame = sseFrame({ error: { message, type: "invalid_request_error", code: 400, retryable: false } });
  return new Response(frame + DONE_FRAME, { headers: SSE_TYPE });
}

function flatError(status: number, { message, type }: { message: string; type: string }): Response {
  return Response.json({ object: "error", message, type, param: null, code: status }, { status });
}

/** A response whose connection breaks after `text`. */
function broken(text: string, headers: HeadersInit = JSON_TYPE): Response {
  async function* source(): AsyncGenerator<string> {
    if (text !== "") yield text;
    await Promise.resolve();
    throw new Error("The connection was cut, as planned.");
  }
  return new Response(sseStream(source(), () => {}), { headers });
}

/** The promise, or a failure once the server has died. */
async function untilDeath<Value>(core: EngineCore, promise: Promise<Value>): Promise<Value> {
  const { signal } = core.death;
  let stop = (): void => {};
  const death = new Promise<never>((_, reject) => {
    stop = () => reject(new Error("The server died."));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([promise, death]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

async function readJson(context: Context): Promise<unknown> {
  try {
    return await context.req.json();
  } catch {
    throw new EngineRefusal("body", "1 validation error: ('body',): JSON decode error");
  }
}

function newRid(): string {
  return crypto.randomUUID().replaceAll("-", "");
}
