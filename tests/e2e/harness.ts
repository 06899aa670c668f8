/** A gateway with an embedded engine on loopback, as end-to-end tests use it. */

import assert from "node:assert/strict";
import { composeDevelopment, type Development, type DevelopmentOptions } from "../../shared/compose_development.ts";
import type { HandlerServices } from "../../functions/handler_services.ts";
import { type ServedGateway, serveGateway } from "../../functions/serve_gateway.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { Json } from "../../shared/core/message.ts";
import type { Clock } from "../../shared/ports/clock.ts";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";
import { EventStream } from "./event_stream.ts";
import { until } from "./until.ts";

/** JSON as tests look into it. */
// deno-lint-ignore no-explicit-any -- tests assert on shapes they name themselves
export type Body = any;

/** An answer read whole. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/** A created task, as an agent and a trainer see it. */
export interface CreatedTask {
  readonly id: string;
  readonly key: string;
}

/** Options of the composition, and what of the services a test wants otherwise. */
export interface HarnessOptions extends DevelopmentOptions {
  readonly services?: Partial<HandlerServices>;
}

/** A running gateway. */
export interface Harness extends AsyncDisposable {
  readonly url: string;
  readonly development: Development;
  readonly gateway: ServedGateway;
  /** An own endpoint. */
  admin(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  /** A task; the call must succeed. */
  createTask(body?: Record<string, unknown>): Promise<CreatedTask>;
  /** A chat completion, not streamed. */
  chat(key: string, body: Record<string, unknown>, headers?: Record<string, string>): Promise<Answered>;
  /** A streamed chat completion; resolves with its headers. */
  stream(key: string, body: Record<string, unknown>, headers?: Record<string, string>): Promise<EventStream>;
  /** What `GET /tasks/ID` says. */
  task(id: string): Promise<Body>;
  /** What `GET /tasks/ID/turns` lists. */
  turns(id: string): Promise<Body[]>;
  /** The decisions of `GET /tasks/ID/explain`. */
  decisions(id: string): Promise<Body[]>;
  /** Waits until the engine runs nothing and nothing is queued. */
  engineIdle(): Promise<void>;
  /** Waits until the engine runs this many requests. */
  engineRuns(count: number): Promise<void>;
}

/** Starts one. The tokenizer is shared by all tests of a process; the log is quiet unless asked for. */
export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const development = await composeDevelopment({
    ...options,
    environment: { LOG_LEVEL: "error", ENGINE_RETRY_S: "1", ...options.environment },
    parts: { tokenizer: await qwen3Tokenizer(), ...options.parts },
  });
  const { engine } = development;
  const gateway = serveGateway({ ...development.services, ...options.services }, { hostname: "127.0.0.1", port: 0 });
  async function call(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<Answered> {
    const response = await fetch(gateway.url + path, {
      method,
      headers: { "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) };
  }
  async function read(path: string): Promise<Body> {
    const { status, body } = await call("GET", path, undefined, {});
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  }
  return {
    url: gateway.url,
    development,
    gateway,
    admin: (method, path, body, headers = {}) => call(method, path, body, headers),
    async createTask(body = {}) {
      const { status, body: created } = await call("POST", "/tasks", body, {});
      assert.equal(status, 201, JSON.stringify(created));
      return { id: created.task_id, key: created.api_key };
    },
    chat: (key, body, headers = {}) =>
      call("POST", "/v1/chat/completions", body, { authorization: `Bearer ${key}`, ...headers }),
    stream: (key, body, headers = {}) =>
      EventStream.open(`${gateway.url}/v1/chat/completions`, {
        headers: { authorization: `Bearer ${key}`, ...headers },
        body: JSON.stringify({ stream: true, ...body }),
      }),
    task: (id) => read(`/tasks/${id}`),
    turns: async (id) => (await read(`/tasks/${id}/turns`)).turns,
    decisions: async (id) => (await read(`/tasks/${id}/explain`)).decisions,
    engineIdle: () => until("the engine is idle", () => engine.running === 0 && engine.queued === 0),
    engineRuns: (count) => until(`the engine runs ${count}`, () => engine.running === count),
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await development.close();
    },
  };
}

/** One harness for all tests of a file. */
export function sharedHarness(options: HarnessOptions = {}): () => Harness {
  let harness: Harness | null = null;
  Deno.test.beforeAll(async () => {
    harness = await startHarness(options);
  });
  Deno.test.afterAll(async () => {
    await harness?.[Symbol.asyncDispose]();
  });
  return () => {
    assert.ok(harness !== null, "The gateway did not start");
    return harness;
  };
}

/** The system's clock, which a test can put forward; sleeps are real. */
export function movableClock(): Clock & { forward(ms: number): void } {
  let aheadMs = 0;
  return {
    now: () => systemClock.now() + aheadMs,
    sleep: (ms, signal) => systemClock.sleep(ms, signal),
    forward(ms) {
      aheadMs += ms;
    },
  };
}

/** A user message. */
export function user(content: string): { role: string; content: string } {
  return { role: "user", content };
}

/** A JSON value as text that a model would write. */
export function asArguments(value: { [key: string]: Json }): string {
  return `{${
    Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}: ${JSON.stringify(inner)}`).join(", ")
  }}`;
}
