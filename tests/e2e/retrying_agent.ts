/**
 * An agent whose client tries again, as OpenAI's own does, until an answer has ended. It keeps what it was told, so that
 * it can be held against the record.
 */

import assert from "node:assert/strict";
import type { Random } from "../fixtures/seeded_random.ts";
import { EventStream } from "./event_stream.ts";
import type { Body } from "./harness.ts";

/** An answer that ended at the client. */
export interface Heard {
  readonly turn: number;
  readonly id: string;
  readonly promptIds: readonly number[];
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly message: Body;
  /** How often the request was sent. */
  readonly attempts: number;
}

/** What happens on the way, for whoever wants to know. */
export type Sight = "frame" | "finish" | "ended" | "failed";

/** Where and how requests are sent. */
export interface RetryingClientOptions {
  /** Of a gateway, which may be down; asked for before every try. */
  readonly url: () => string;
  /** Ends the tries. */
  readonly signal: AbortSignal;
  readonly onSight?: (sight: Sight) => void;
  /** A stream may end in an error of the engine's, which is then tried again; otherwise it is a finding. */
  readonly mayFailInStream?: boolean;
}

const PAUSE_MS = 20;

/** Sends requests until they are answered. */
export class RetryingClient {
  readonly #options: RetryingClientOptions;

  constructor(options: RetryingClientOptions) {
    this.#options = options;
  }

  /** A call of an own endpoint. One that fails for good fails here. */
  async admin(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Body> {
    return await this.#untilDone(async () => {
      const response = await fetch(this.#options.url() + path, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      this.#mayTryAgain(response, text);
      return JSON.parse(text);
    });
  }

  /** A chat completion; the same request again, with a retry header, until one answer has ended. */
  async chat(key: string, body: Record<string, unknown>): Promise<Heard> {
    let attempts = 0;
    /** Ids of answers whose finish was seen: each of them was committed. */
    let committed: string | null = null;
    return await this.#untilDone(async () => {
      const headers = { authorization: `Bearer ${key}`, "x-stainless-retry-count": String(attempts++) };
      const told = body["stream"] === true ? await this.#stream(headers, body) : await this.#whole(headers, body);
      if (committed !== null && told.id !== null && told.heard !== null) {
        assert.equal(told.id, committed, "an answer whose finish was seen is given again");
      }
      if (told.finished) committed = told.id;
      if (told.heard === null) throw new Broken();
      this.#options.onSight?.("ended");
      return { ...told.heard, attempts };
    });
  }

  async #whole(headers: Record<string, string>, body: Record<string, unknown>): Promise<Told> {
    const response = await fetch(`${this.#options.url()}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    this.#mayTryAgain(response, text);
    const answer: Body = JSON.parse(text);
    const [choice] = answer.choices;
    return {
      id: answer.id,
      finished: true,
      heard: {
        turn: Number(response.headers.get("x-verbatim-turn")),
        id: answer.id,
        promptIds: answer.prompt_token_ids,
        ids: choice.token_ids,
        logprobs: choice.logprobs.content.map((entry: Body) => entry.logprob),
        message: choice.message,
      },
    };
  }

  async #stream(headers: Record<string, string>, body: Record<string, unknown>): Promise<Told> {
    const stream = await EventStream.open(`${this.#options.url()}/v1/chat/completions`, {
      headers,
      body: JSON.stringify(body),
    });
    if (stream.status !== 200) {
      this.#mayTryAgain(stream, JSON.stringify(await stream.next().catch(() => null)));
    }
    const message: Body = { role: "assistant", content: "" };
    let id: string | null = null;
    let last: Body = null;
    const logprobs: number[] = [];
    for (let frame = await stream.next(); frame !== null; frame = await stream.next()) {
      if (this.#options.mayFailInStream && /^engine_/.test(frame.error?.code)) throw new Broken();
      assert.equal(frame.error, undefined, JSON.stringify(frame));
      id = frame.id;
      addDelta(message, frame.choices[0].delta);
      for (const entry of frame.choices[0].logprobs?.content ?? []) logprobs.push(entry.logprob);
      if (frame.choices[0].finish_reason !== null) last = frame;
      this.#options.onSight?.(last === null ? "frame" : "finish");
    }
    const finished = last !== null;
    if (stream.end !== "done") return { id, finished, heard: null };
    assert.ok(finished && id !== null, "a stream that ends has a finish chunk");
    if (message.content === "" && message.tool_calls) message.content = null;
    const [choice] = last.choices;
    return {
      id,
      finished,
      heard: {
        turn: last.verbatim.turn,
        id,
        promptIds: last.prompt_token_ids,
        ids: choice.token_ids,
        logprobs,
        message,
      },
    };
  }

  /** Throws for an answer that is none: to be tried again where the server says so, else for good. */
  #mayTryAgain(response: { readonly status: number; readonly headers: Headers }, text: string): void {
    if (response.status < 300) return;
    if (response.status >= 500 && response.headers.get("x-should-retry") !== "false") throw new Broken();
    assert.fail(`The gateway answered ${response.status}: ${text}`);
  }

  async #untilDone<T>(attempt: () => Promise<T>): Promise<T> {
    for (;;) {
      this.#options.signal.throwIfAborted();
      try {
        return await attempt();
      } catch (error) {
        // What fetch throws for a server that is gone is a TypeError; anything else is a finding.
        if (!(error instanceof Broken) && !(error instanceof TypeError)) throw error;
        this.#options.onSight?.("failed");
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** What one attempt told. */
interface Told {
  /** Of the answer, as far as it came. */
  readonly id: string | null;
  /** Whether its finish was seen, which is sent after the commit alone. */
  readonly finished: boolean;
  /** The answer, where it ended. */
  readonly heard: Omit<Heard, "attempts"> | null;
}

class Broken extends Error {}

function addDelta(message: Body, delta: Body): void {
  if (delta.content) message.content += delta.content;
  if (delta.reasoning_content) {
    message.reasoning_content = (message.reasoning_content ?? "") + delta.reasoning_content;
  }
  for (const { index, ...call } of delta.tool_calls ?? []) (message.tool_calls ??= [])[index] = call;
}

/** What scaffolds do to a message before they send it back: none of it changes the series. */
export function echoed(message: Body, random: Random): Body {
  const echo = structuredClone(message);
  if (random.chance(0.3)) delete echo.reasoning_content;
  if (random.chance(0.3) && echo.content) echo.content = [{ type: "text", text: echo.content }];
  if (random.chance(0.5)) {
    for (const call of echo.tool_calls ?? []) {
      call.function.arguments = JSON.stringify(JSON.parse(call.function.arguments));
    }
  }
  return echo;
}
