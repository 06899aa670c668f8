/** A gateway with an embedded engine on loopback, as end-to-end tests use it. */

import assert from "node:assert/strict";
import { composeDevelopment, type Development, type DevelopmentOptions } from "../../shared/compose_development.ts";
import { type ServedGateway, serveGateway } from "../../functions/serve_gateway.ts";
import type { Json } from "../../shared/core/message.ts";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";

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
}

/** Starts one. The tokenizer is shared by all tests of a process; the log is quiet unless asked for. */
export async function startHarness(options: DevelopmentOptions = {}): Promise<Harness> {
  const development = await composeDevelopment({
    ...options,
    environment: { LOG_LEVEL: "error", ENGINE_RETRY_S: "1", ...options.environment },
    parts: { tokenizer: await qwen3Tokenizer(), ...options.parts },
  });
  const gateway = serveGateway(development.services, { hostname: "127.0.0.1", port: 0 });
  async function call(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<Answered> {
    const response = await fetch(gateway.url + path, {
      method,
      headers: { "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) };
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
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await development.close();
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
