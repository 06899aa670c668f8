/** Conversations whose requests are equally long in tokens and in bytes, however many turns they have. */

import { AgentConversation, firstMessages } from "./agent_conversation.ts";
import { postJson } from "./bench_targets.ts";
import { nullReplyMessage } from "./null_reply.ts";
import type { PromptSizes } from "./prompt_sizes.ts";
import { promptText, proseText } from "./prompt_text.ts";

/** A conversation to begin with. */
export interface EqualPrompt {
  /** Turns before the request that is to have the length. */
  readonly turns: number;
  readonly seed: number;
}

/** Units of the two kinds of text in a first message. */
interface Mixture {
  readonly mixed: number;
  readonly prose: number;
}

/** Estimates are corrected by what the tokenizer counts, so often. */
const CORRECTIONS = 3;

/**
 * Begins two conversations, of a few turns and of many, whose requests have `promptTokens` after their turns and the
 * same number of bytes. The turns of the longer one have more bytes a token than text has; the shorter one's text makes
 * up for it with prose, which has fewer tokens for its length than code and logs.
 */
export async function equalConversations(
  url: string,
  sizes: PromptSizes,
  options: { readonly promptTokens: number; readonly few: EqualPrompt; readonly many: EqualPrompt },
): Promise<{ readonly few: AgentConversation; readonly many: AgentConversation }> {
  const turnBytes = bytesOfTurn();
  const tokensOf = ({ turns }: EqualPrompt) => {
    const tokens = options.promptTokens - sizes.frameTokens - sizes.turnTokens * turns;
    if (tokens <= 0) throw new Error(`${turns} turns have more than ${options.promptTokens} tokens`);
    return tokens;
  };
  const many = await textOf(url, sizes, { tokens: tokensOf(options.many), seed: options.many.seed });
  const jsonBytes = JSON.stringify(many).length + turnBytes * (options.many.turns - options.few.turns);
  const few = await textOf(url, sizes, { tokens: tokensOf(options.few), jsonBytes, seed: options.few.seed });
  return { few: AgentConversation.of(firstMessages(few)), many: AgentConversation.of(firstMessages(many)) };
}

/** Text of so many tokens and, where they are given, so many bytes as JSON. */
async function textOf(
  url: string,
  sizes: PromptSizes,
  wanted: { readonly tokens: number; readonly jsonBytes?: number; readonly seed: number },
): Promise<string> {
  const write = ({ mixed, prose }: Mixture) => promptText(mixed, wanted.seed) + proseText(prose, wanted.seed);
  let mixture: Mixture = { mixed: Math.ceil(wanted.tokens / sizes.tokensPerUnit), prose: 0 };
  for (let correction = 0; correction < CORRECTIONS; correction++) {
    const text = write(mixture);
    const { count } = await postJson<{ count: number }>(`${url}/tokenize`, { prompt: text });
    const missing = {
      tokens: wanted.tokens - count,
      jsonBytes: wanted.jsonBytes === undefined ? null : wanted.jsonBytes - JSON.stringify(text).length,
    };
    mixture = corrected(mixture, missing, sizes);
  }
  return write(mixture);
}

function corrected(
  { mixed, prose }: Mixture,
  { tokens, jsonBytes }: { readonly tokens: number; readonly jsonBytes: number | null },
  sizes: PromptSizes,
): Mixture {
  const { tokensPerUnit: a, proseTokensPerUnit: b, jsonBytesPerUnit: c, proseJsonBytesPerUnit: d } = sizes;
  // a·x + b·y = tokens and c·x + d·y = bytes; without a number of bytes y is 0.
  const determinant = a * d - b * c;
  const change = jsonBytes === null
    ? { mixed: tokens / a, prose: 0 }
    : { mixed: (tokens * d - jsonBytes * b) / determinant, prose: (jsonBytes * a - tokens * c) / determinant };
  return { mixed: Math.max(0, Math.round(mixed + change.mixed)), prose: Math.max(0, Math.round(prose + change.prose)) };
}

/** Bytes by which a request grows with a turn. */
function bytesOfTurn(): number {
  const conversation = AgentConversation.of([]);
  const before = conversation.request().length;
  conversation.take(nullReplyMessage(crypto.randomUUID()));
  return conversation.request().length - before;
}
