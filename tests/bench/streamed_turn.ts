/** One streamed turn of an agent, up to its first delta and to its end. It knows the two wires that a stream comes over. */

import type { ServedMessage } from "./agent_conversation.ts";
import { nullReplyMessage } from "./null_reply.ts";

/** How the answer comes: as chunks of the chat API, or as the engine's own frames, which a relay passes on. */
export type StreamWire = "chat" | "engine";

/** What an agent saw of a turn. */
export interface StreamedTurn {
  /** From the request to the read that brought the first text, reasoning or call. */
  readonly firstDeltaMs: number;
  /** From the request to the end of the stream. */
  readonly wholeMs: number;
  readonly message: ServedMessage;
}

/** Sends a request and reads its answer to the end. An answer without a delta or without its end is an error. */
export async function streamedTurn(
  url: string,
  request: { readonly key: string; readonly body: Uint8Array<ArrayBuffer>; readonly wire: StreamWire },
  signal: AbortSignal,
): Promise<StreamedTurn> {
  const answer = request.wire === "chat" ? new ChatAnswer() : new EngineAnswer();
  const startedAt = performance.now();
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${request.key}` },
    body: request.body,
    signal,
  });
  if (!response.ok || response.body === null) {
    throw new Error(`${response.status}: ${(await response.text()).slice(0, 300)}`);
  }
  const decoder = new TextDecoder();
  let firstDeltaMs: number | null = null;
  let done = false;
  let rest = "";
  for await (const bytes of response.body) {
    const elapsedMs = performance.now() - startedAt;
    const events = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") done = true;
      else if (answer.read(JSON.parse(data))) firstDeltaMs ??= elapsedMs;
    }
  }
  if (firstDeltaMs === null || !done) throw new Error(`The stream has no ${done ? "delta" : "end"}`);
  return { firstDeltaMs, wholeMs: performance.now() - startedAt, message: answer.message() };
}

interface Chunk {
  readonly choices?: readonly {
    readonly delta: {
      readonly content?: string;
      readonly reasoning_content?: string;
      readonly tool_calls?: ToolCall[];
    };
  }[];
  readonly error?: unknown;
}

type ToolCall = { readonly index?: number; readonly id: string };

/** Joins chunks of the chat API. */
class ChatAnswer {
  #content = "";
  readonly #calls: ToolCall[] = [];

  /** Takes a chunk; whether it says anything. */
  read(chunk: Chunk): boolean {
    if (chunk.error !== undefined) throw new Error(`The stream failed: ${JSON.stringify(chunk.error).slice(0, 300)}`);
    const delta = chunk.choices?.[0]?.delta ?? {};
    this.#content += delta.content ?? "";
    // A gateway gives a call whole.
    for (const { index: _, ...call } of delta.tool_calls ?? []) this.#calls.push(call);
    return Boolean(delta.content) || Boolean(delta.reasoning_content) || (delta.tool_calls ?? []).length > 0;
  }

  message(): ServedMessage {
    const calls = this.#calls.length === 0 ? {} : { tool_calls: this.#calls };
    return { ...{ role: "assistant", content: this.#content }, ...calls };
  }
}

/** Reads the engine's frames, of which the agent would make what they say. */
class EngineAnswer {
  /** Takes a frame; whether it holds tokens. */
  read(frame: { readonly output_ids?: readonly number[] }): boolean {
    return (frame.output_ids ?? []).length > 0;
  }

  message(): ServedMessage {
    return nullReplyMessage(crypto.randomUUID());
  }
}
