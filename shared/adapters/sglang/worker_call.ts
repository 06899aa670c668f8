/** One POST to a worker's `/generate`: its silence, its end, and the abort of what may still run. It reads no reply. */

import type { Background } from "../../ports/background.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { CallOutcome } from "./circuit_breaker.ts";
import { EngineFailure } from "./engine_failure.ts";
import { LeavableCall } from "./leavable_call.ts";
import { abortOnWorkers } from "./sglang_abort.ts";
import { failureOfStatus } from "./sglang_failure.ts";
import type { SglangWorkers } from "./sglang_workers.ts";
import { SilenceWatch } from "./silence_watch.ts";
import type { WorkerLease } from "./worker_pool.ts";

/** What every call of one engine has in common. */
export interface WorkerCallSettings {
  readonly workers: SglangWorkers;
  /** Longest silence of a running request. */
  readonly idleTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly background: Background;
}

/** What one call sends where. */
export interface WorkerCallRequest {
  readonly lease: WorkerLease;
  readonly rid: string;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly routingKey: string | null;
  /** The caller's; it has not aborted yet. */
  readonly signal: AbortSignal;
}

/** The call. Whoever makes it must `leave` it. */
export class WorkerCall {
  readonly #settings: WorkerCallSettings;
  readonly #request: WorkerCallRequest;
  /** The worker, where it is known which one has the call. */
  readonly #worker: string | null;
  readonly #watch: SilenceWatch;
  readonly #call: LeavableCall;
  #answered = false;
  #outcome: CallOutcome = "left";
  /** Whether the worker may still be at it, and whether its connection still tells. */
  #state: "open" | "broken" | "over" = "open";

  /** Sends it. */
  constructor(settings: WorkerCallSettings, request: WorkerCallRequest) {
    const { workers, clock, idleTimeoutMs } = settings;
    const { lease, body, routingKey } = request;
    this.#settings = settings;
    this.#request = request;
    this.#worker = workers.servedBy(lease.url);
    this.#watch = new SilenceWatch(clock, idleTimeoutMs, workers.pauses.of(this.#worker));
    const init = { method: "POST", headers: workers.headers(routingKey), body };
    this.#call = new LeavableCall(
      (signal) => workers.fetch(`${lease.url}/generate`, { ...init, signal }),
      AbortSignal.any([request.signal, this.#watch.signal]),
    );
  }

  /** The whole body of a good answer. Another status is thrown as the failure it is. */
  async text(): Promise<string> {
    const response = await this.#head();
    const text = await this.#call.text();
    if (!response.ok) throw failureOfStatus(response.status, text, response.headers.get("retry-after"));
    return text;
  }

  /** The body of a good answer as it comes. Another status is thrown as the failure it is. */
  async *bytes(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const response = await this.#head();
    if (!response.ok) await this.text();
    yield* this.#call.bytes();
  }

  /** The answer went on. Bytes alone say nothing: a proxy may keep a dead answer alive with comments. */
  heard(): void {
    this.#watch.heard();
  }

  /** The worker has said its last word. */
  finished(): void {
    this.#outcome = "served";
    this.#state = "over";
  }

  /** The failure behind whatever was thrown. Throws the caller's own reason where the caller has aborted. */
  failed(cause: unknown): EngineFailure {
    this.#request.signal.throwIfAborted();
    const failure = this.#failureOf(cause);
    this.#outcome = failure.isFault ? "fault" : "served";
    if (failure.isOver) this.#state = "over";
    else if (failure.kind !== "silent" && failure.kind !== "inconsistent") this.#state = "broken";
    return failure;
  }

  /** Ends the call on our side and, where the worker may still be at it, on the worker's: it must stop sampling. */
  leave(): void {
    const { lease } = this.#request;
    this.#watch.end();
    lease.done(this.#outcome);
    if (this.#state === "over") this.#call.hangUp();
    else this.#settings.background.run("abort on the engine", this.#abort());
  }

  /** The abort goes first: a worker that notices the hang-up first may forget the request and go on with it. */
  async #abort(): Promise<void> {
    const over = this.#state === "broken" ? null : this.#call.over();
    await abortOnWorkers(this.#request.rid, { ...this.#settings, url: this.#worker, over });
    this.#call.hangUp();
  }

  async #head(): Promise<Response> {
    const response = await this.#call.response();
    this.#answered = true;
    this.#watch.heard();
    return response;
  }

  #failureOf(cause: unknown): EngineFailure {
    const silence: unknown = this.#watch.signal.reason;
    if (silence instanceof EngineFailure) return silence;
    if (cause instanceof EngineFailure) return cause;
    return this.#answered
      ? new EngineFailure("cut", "The engine broke the connection", { cause })
      : new EngineFailure("unreachable", "The engine can't be reached", { cause });
  }
}
