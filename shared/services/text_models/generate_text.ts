/** `generate` by a text-level model: messages in, text out, in the events of the token-level one. */

import type { Conversation } from "../../core/message.ts";
import type { SamplingParams } from "../../core/sampling.ts";
import type { Metrics } from "../../ports/metrics.ts";
import { askTextModel } from "./ask_text_model.ts";
import type { GenerateEvent } from "../generate.ts";
import type { TextModel } from "../model_catalog.ts";

/** What is asked for. */
export interface GenerateTextCall {
  readonly model: TextModel;
  readonly conversation: Conversation;
  readonly sampling: SamplingParams;
  readonly stream: boolean;
}

/** Runs one call: deltas of text without tokens, where they were asked for, then the whole. */
export async function* generateText(
  call: GenerateTextCall,
  metrics: Metrics,
  signal: AbortSignal,
): AsyncGenerator<GenerateEvent> {
  const texts: string[] = [];
  const gone = new AbortController();
  let news = Promise.withResolvers<void>();
  const wake = (): void => {
    news.resolve();
    news = Promise.withResolvers();
  };
  let ended = false;
  const answered = askTextModel(
    {
      ...call,
      toolChoice: "auto",
      parallelCalls: true,
      onDelta: !call.stream ? undefined : (delta) => {
        if (delta.type !== "content") return;
        texts.push(delta.text);
        wake();
      },
    },
    metrics,
    AbortSignal.any([signal, gone.signal]),
  );
  // A failure is thrown at the end; until then it only wakes the reader.
  answered.catch(() => {}).finally(() => {
    ended = true;
    wake();
  });
  try {
    for (;;) {
      const awaited = news.promise;
      for (const text of texts.splice(0)) yield { type: "delta", token_ids: null, logprobs: null, text };
      if (ended && texts.length === 0) break;
      if (texts.length === 0) await awaited;
    }
    yield { type: "result", result: await answered };
  } finally {
    gone.abort(new DOMException("Nobody reads on", "AbortError"));
  }
}
