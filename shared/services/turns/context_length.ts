/** Does a prompt leave room for a reply, and how much? Checked before an engine or router sees the request. */

import { VerbatimError } from "../../core/errors.ts";

/**
 * Tokens that may be sampled: the wish clipped to what the context leaves. No room for one token is
 * `context_length_exceeded`, in OpenAI's words, which clients look for.
 */
export function tokensLeft(options: { promptTokens: number; maxContextTokens: number; wished: number | null }): number {
  const left = options.maxContextTokens - options.promptTokens;
  if (left < 1) {
    const asked = options.promptTokens + Math.max(1, options.wished ?? 1);
    throw new VerbatimError(
      "context_length_exceeded",
      `This model's maximum context length is ${options.maxContextTokens} tokens. However, you requested ${asked} tokens ` +
        `(${options.promptTokens} in the messages, ${asked - options.promptTokens} in the completion). ` +
        "Please reduce the length of the messages.",
      {
        details: {
          max_context_tokens: options.maxContextTokens,
          prompt_tokens: options.promptTokens,
          requested_tokens: asked,
        },
      },
    );
  }
  return options.wished === null ? left : Math.min(left, options.wished);
}
