/** A gateway with an embedded engine on loopback, as end-to-end tests use it. */

import assert from "node:assert/strict";
import { composeDevelopment, type Development, type DevelopmentOptions } from "../../shared/compose_development.ts";
import type { HandlerServices } from "../../functions/handler_services.ts";
import { type ServedGateway, serveGateway } from "../../functions/serve_gateway.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { Json } from "../../shared/core/message.ts";
import type { Clock } from "../../shared/ports/clock.ts";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";
import { type GatewayClient, gatewayClient } from "./gateway_client.ts";
import { until } from "./until.ts";

export type { Answered, Body, CreatedTask } from "./gateway_client.ts";

/** Options of the composition, and what of the services a test wants otherwise. */
export interface HarnessOptions extends DevelopmentOptions {
  readonly services?: Partial<HandlerServices>;
}

/** A running gateway. */
export interface Harness extends GatewayClient, AsyncDisposable {
  readonly development: Development;
  readonly gateway: ServedGateway;
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
  return {
    ...gatewayClient(gateway.url),
    development,
    gateway,
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
