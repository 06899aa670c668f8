/** The workers of an engine, seen and steered by the trainer's side. Adapter: sglang_control. It generates nothing. */

/** How the gateway's own circuit to a worker stands; `unknown` behind a router, which keeps its own. */
export type Circuit = "closed" | "open" | "half_open" | "unknown";

/** One worker, as far as it could be asked. Fields are null where it did not say. */
export interface WorkerState {
  /** Base URL. */
  readonly url: string;
  /** Whether it answered its questions. A worker that is paused may not. */
  readonly reachable: boolean;
  /** Why not, where it did not. */
  readonly reason: string | null;
  /** Whether the router, where there is one, sends it requests. */
  readonly healthy: boolean | null;
  readonly modelPath: string | null;
  readonly weightVersion: string | null;
  /** Requests being sampled. */
  readonly running: number | null;
  /** Requests in its queue. */
  readonly queued: number | null;
  readonly circuit: Circuit;
  /** Calls of this process that it serves now; null behind a router. */
  readonly inFlight: number | null;
}

/** What can be asked of every worker. Bodies are SGLang's own (sglang.md, RL surface). */
export type EngineAction =
  | "pause"
  | "continue"
  | "update_from_disk"
  | "set_version"
  | "flush"
  | "abort_all"
  | "release_memory"
  | "resume_memory";

/** What one worker made of an action. */
export interface WorkerResult {
  readonly url: string;
  readonly ok: boolean;
  /** HTTP status; null where none came. */
  readonly status: number | null;
  /** The worker's words, or why there are none. */
  readonly message: string | null;
}

/** Steers every worker at once. */
export interface EngineControl {
  /** Every worker behind the engine, asked now. Never rejects for a worker: it is then not reachable. */
  workers(signal: AbortSignal): Promise<readonly WorkerState[]>;
  /**
   * Sends an action with the body's fields to every worker and waits for all of them. Never rejects for a worker: its
   * result says so. `engine_unavailable` where the workers can't be listed.
   */
  act(
    action: EngineAction,
    body: { readonly [field: string]: unknown },
    signal: AbortSignal,
  ): Promise<readonly WorkerResult[]>;
}
