/** A client that tries again until an answer has ended, as the APIs' own clients do, only longer; now and then it gives a try up itself. */

import assert from "node:assert/strict";
import type { Body } from "../e2e/gateway_client.ts";
import type { Progress } from "./progress.ts";
import { sleepMs } from "./sleep_ms.ts";
import type { Said, Talk } from "./talks.ts";

/** Where and how requests are sent. */
export interface PatientClientOptions {
  /** Of the gateway, which may be down. */
  readonly url: string;
  /** Aborts when the process behind the URL is gone. */
  readonly connection: () => AbortSignal;
  readonly progress: Progress;
  /** Ends the tries. */
  readonly signal: AbortSignal;
}

/** One request of an agent. */
export interface Asking {
  readonly key: string;
  readonly talk: Talk;
  readonly stream: boolean;
  readonly maxTokens: number;
  /** The first try is given up: after so many pieces of a stream, or so many milliseconds. Null: not. */
  readonly hangUpAfter: number | null;
}

/** Tries of one request: more than any fault here lasts. */
const MOST_TRIES = 80;
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;

/** Sends requests until they are answered. */
export class PatientClient {
  readonly #options: PatientClientOptions;

  constructor(options: PatientClientOptions) {
    this.#options = options;
  }

  /** A call of an own endpoint. One that fails for good fails here. */
  async admin(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Body> {
    return await this.#tryLong(`${method} ${path}`, async () => {
      const response = await fetch(this.#options.url + path, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.any([this.#options.connection(), this.#options.signal]),
      });
      const text = await response.text();
      const answer: Body = JSON.parse(text);
      if (response.ok) return answer;
      if (answer.error?.retryable === true) throw new TryAgain(text);
      return assert.fail(`${method} ${path}: ${response.status} ${text}`);
    });
  }

  /** An agent's request, again with a retry header until an answer has ended. */
  async ask(asking: Asking): Promise<Said> {
    /** The answer whose finish was seen: it was committed, so it is the answer. */
    let committed: string | null = null;
    const said = await this.#tryLong(asking.talk.path, async (tries) => {
      const hangUpAfter = tries === 0 ? asking.hangUpAfter : null;
      const headers = {
        "content-type": "application/json",
        ...asking.talk.headers(asking.key),
        "x-stainless-retry-count": String(tries),
      };
      const hangUp = new AbortController();
      const init = {
        method: "POST",
        headers,
        body: JSON.stringify(asking.talk.body(asking)),
        signal: AbortSignal.any([hangUp.signal, this.#options.connection(), this.#options.signal]),
      };
      if (!asking.stream) return await this.#whole(asking, init, { hangUp, afterMs: hangUpAfter });
      return await this.#streamed(asking, init, {
        hangUp,
        afterPieces: hangUpAfter,
        onFinish(id) {
          assert.equal(id, committed ?? id, "an answer whose finish was seen is given again");
          committed = id;
        },
      });
    });
    this.#options.progress.count("heard");
    return said;
  }

  async #whole(
    { talk }: Asking,
    init: RequestInit,
    giving: { readonly hangUp: AbortController; readonly afterMs: number | null },
  ): Promise<Said> {
    const timer = giving.afterMs === null
      ? null
      : setTimeout(() => giving.hangUp.abort(new TryAgain("hung up")), giving.afterMs);
    try {
      const response = await fetch(this.#options.url + talk.path, init);
      const text = await response.text();
      mayTryAgain(response, text);
      return talk.whole(JSON.parse(text), response.headers);
    } finally {
      if (timer !== null) clearTimeout(timer);
    }
  }

  async #streamed(
    { talk }: Asking,
    init: RequestInit,
    giving: {
      readonly hangUp: AbortController;
      readonly afterPieces: number | null;
      readonly onFinish: (id: string) => void;
    },
  ): Promise<Said> {
    const { afterPieces, hangUp } = giving;
    const response = await fetch(this.#options.url + talk.path, init);
    if (!response.ok) mayTryAgain(response, await response.text());
    const decoder = new TextDecoder("utf-8", { fatal: true });
    let text = "";
    let pieces = 0;
    let broken: unknown = null;
    try {
      for await (const bytes of response.body ?? []) {
        text += decoder.decode(bytes, { stream: true });
        this.#options.progress.count("piece");
        if (afterPieces !== null && pieces++ >= afterPieces) hangUp.abort(new TryAgain("hung up"));
      }
    } catch (thrown) {
      this.#options.signal.throwIfAborted();
      broken = thrown;
    }
    const seen = talk.see(text);
    if (seen.finished) giving.onFinish(seen.id!);
    if (seen.error !== null) {
      assert.ok(!/inside Verbatim|"internal"/.test(seen.error), `in a stream: ${seen.error}`);
      assert.ok(broken !== null, "a stream that failed is broken off");
      throw new TryAgain(seen.error);
    }
    if (!seen.ended) {
      assert.ok(broken !== null, `a stream without an end is broken off: ${text.slice(-300)}`);
      throw new TryAgain(String(broken));
    }
    return await talk.streamed(text);
  }

  async #tryLong<T>(what: string, attempt: (tries: number) => Promise<T>): Promise<T> {
    const reasons: string[] = [];
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      try {
        return await attempt(tries);
      } catch (thrown) {
        if (this.#options.signal.aborted) {
          throw new Error(`${what}: no answer to try ${tries + 1}; before: ${reasons.slice(-5).join(" | ")}`);
        }
        // What fetch throws for a server that is gone is a TypeError; anything else is a finding.
        if (!(thrown instanceof TryAgain) && !(thrown instanceof TypeError)) throw thrown;
        reasons.push(thrown.message.slice(0, 200));
      }
      await sleepMs(Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS));
    }
    throw new Error(`${what}: given up after ${MOST_TRIES} tries: ${reasons.slice(-5).join(" | ")}`);
  }
}

/** Why a try came to nothing, where another is worth it. */
class TryAgain extends Error {}

/** Throws for an answer that is none: to be tried again where the server says so, else for good. */
function mayTryAgain(response: Response, text: string): void {
  if (response.ok) return;
  if (response.headers.get("x-should-retry") === "true") throw new TryAgain(`${response.status} ${text}`);
  assert.fail(`The gateway answered ${response.status}: ${text}`);
}
