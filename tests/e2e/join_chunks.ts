/** Chunks of a streamed chat answer, put together as a client does. */

import type { Body } from "./harness.ts";

/** The message, the finish reason, ids, logprobs and usage, as far as chunks carried them. */
export function joinChunks(chunks: readonly Body[]): Body {
  const message: Body = { role: "assistant", content: null };
  const joined: Body = { message };
  for (const chunk of chunks) {
    if (chunk.usage) joined.usage = chunk.usage;
    if (chunk.verbatim) joined.turn = chunk.verbatim.turn;
    if (chunk.prompt_token_ids) joined.prompt_token_ids = chunk.prompt_token_ids;
    const [choice] = chunk.choices;
    if (choice === undefined) continue;
    const { delta } = choice;
    if (delta.content) message.content = (message.content ?? "") + delta.content;
    if (delta.reasoning_content) {
      message.reasoning_content = (message.reasoning_content ?? "") + delta.reasoning_content;
    }
    for (const { index, ...call } of delta.tool_calls ?? []) (message.tool_calls ??= [])[index] = call;
    if (choice.finish_reason) joined.finish_reason = choice.finish_reason;
    if (choice.token_ids) joined.token_ids = [...joined.token_ids ?? [], ...choice.token_ids];
    if (choice.logprobs) joined.logprobs = [...joined.logprobs ?? [], ...choice.logprobs.content];
  }
  // Alone, no text is ""; beside calls it is null.
  if (message.content === null && message.tool_calls === undefined) message.content = "";
  return joined;
}
