/** What agents and trainers ask of a gateway, in few words. It does not know what is behind it. */

import assert from "node:assert/strict";
import { EventStream } from "./event_stream.ts";

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

/** Calls to one gateway. */
export interface GatewayClient {
  readonly url: string;
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
}

/** Calls to the gateway at this URL. */
export function gatewayClient(url: string): GatewayClient {
  async function call(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<Answered> {
    const response = await fetch(url + path, {
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
    url,
    admin: (method, path, body, headers = {}) => call(method, path, body, headers),
    async createTask(body = {}) {
      const { status, body: created } = await call("POST", "/tasks", body, {});
      assert.equal(status, 201, JSON.stringify(created));
      return { id: created.task_id, key: created.api_key };
    },
    chat: (key, body, headers = {}) =>
      call("POST", "/v1/chat/completions", body, { authorization: `Bearer ${key}`, ...headers }),
    stream: (key, body, headers = {}) =>
      EventStream.open(`${url}/v1/chat/completions`, {
        headers: { authorization: `Bearer ${key}`, ...headers },
        body: JSON.stringify({ stream: true, ...body }),
      }),
    task: (id) => read(`/tasks/${id}`),
    turns: async (id) => (await read(`/tasks/${id}/turns`)).turns,
    decisions: async (id) => (await read(`/tasks/${id}/explain`)).decisions,
  };
}
