/**
 * Long texts, one after the other, through one worker that is started with the first of them. A worker that crashes fails
 * the text it was at; the next one gets a fresh worker. It does not know how text is encoded.
 */

import { VerbatimError } from "../../core/errors.ts";
import type { EncodeOptions } from "../../ports/tokenizer.ts";
import type { EncodeMessage, EncodeReply } from "./encode_worker.ts";
import type { EncoderSource } from "./hf_encoder.ts";

/** As much of a worker as is used here. */
export interface EncodeWorker {
  postMessage(message: EncodeMessage): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<EncodeReply>) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

interface Job {
  readonly text: string;
  readonly options: EncodeOptions;
  readonly resolve: (ids: Uint32Array) => void;
  readonly reject: (reason: unknown) => void;
  /** Stops listening to the caller's signal. */
  readonly settle: () => void;
}

/** A host without workers encodes inline. */
export function hostHasWorkers(): boolean {
  return typeof Worker === "function";
}

export function startEncodeWorker(): EncodeWorker {
  return new Worker(new URL("./encode_worker.ts", import.meta.url), { type: "module" });
}

export class EncodeQueue {
  readonly #source: EncoderSource;
  readonly #start: () => EncodeWorker;
  readonly #waiting: Job[] = [];
  #worker: EncodeWorker | null = null;
  /** What the worker is at; its caller may have gone. */
  #running: Job | null = null;
  #closed = false;

  constructor(source: EncoderSource, start: () => EncodeWorker) {
    this.#source = source;
    this.#start = start;
  }

  /** Rejects with the signal's reason as soon as it aborts; a text that has not begun by then is never encoded. */
  encode(text: string, options: EncodeOptions, signal?: AbortSignal): Promise<Uint32Array> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.#closed) throw closedError();
      const onAbort = () => {
        const index = this.#waiting.indexOf(job);
        if (index >= 0) this.#waiting.splice(index, 1);
        job.reject(signal?.reason);
      };
      const settle = () => signal?.removeEventListener("abort", onAbort);
      const job: Job = { text, options, resolve, reject, settle };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(job);
      this.#next();
    });
  }

  close(): void {
    this.#closed = true;
    this.#stopWorker();
    const jobs = this.#running === null ? this.#waiting : [this.#running, ...this.#waiting];
    this.#running = null;
    for (const job of jobs.splice(0)) finish(job, () => job.reject(closedError()));
    this.#waiting.length = 0;
  }

  #next(): void {
    if (this.#running !== null) return;
    const job = this.#waiting.shift();
    if (job === undefined) return;
    this.#running = job;
    try {
      this.#worker ??= this.#startWorker();
      this.#worker.postMessage({ type: "encode", text: job.text, options: job.options });
    } catch (error) {
      this.#crashed(error);
    }
  }

  #startWorker(): EncodeWorker {
    const worker = this.#start();
    worker.onmessage = ({ data: reply }) => {
      const job = this.#running;
      if (worker !== this.#worker || job === null) return;
      this.#running = null;
      if (reply.type === "ids") finish(job, () => job.resolve(reply.ids));
      else finish(job, () => job.reject(failure(new Error(reply.message))));
      this.#next();
    };
    worker.onmessageerror = () => this.#crashed(new Error("a message of the worker could not be read"));
    worker.onerror = (event) => {
      // Else the error would end the process.
      event.preventDefault();
      if (worker === this.#worker) this.#crashed(event.error ?? new Error(event.message));
    };
    worker.postMessage({ type: "start", source: this.#source });
    return worker;
  }

  #crashed(cause: unknown): void {
    this.#stopWorker();
    const job = this.#running;
    this.#running = null;
    if (job !== null) finish(job, () => job.reject(failure(cause)));
    this.#next();
  }

  #stopWorker(): void {
    const worker = this.#worker;
    this.#worker = null;
    worker?.terminate();
  }
}

function finish(job: Job, settle: () => void): void {
  job.settle();
  settle();
}

function failure(cause: unknown): VerbatimError {
  return new VerbatimError("internal", "A text could not be encoded: the encoding worker failed.", { cause });
}

function closedError(): VerbatimError {
  return new VerbatimError("internal", "A text could not be encoded: the tokenizer is closed.");
}
