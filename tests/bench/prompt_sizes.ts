/** How long a text must be for a prompt of so many tokens, as the gateway's own tokenizer counts. */

import { AGENT_TOOLS, AgentConversation, firstMessages } from "./agent_conversation.ts";
import { postJson } from "./bench_targets.ts";
import { NULL_REPLY_IDS } from "./null_reply.ts";
import { promptText, proseText } from "./prompt_text.ts";

/** What a gateway's tokenizer makes of the bench's texts. */
export interface PromptSizes {
  /** Tokens of one character of prompt text. */
  readonly tokensPerUnit: number;
  /** Bytes of one character of prompt text in JSON. */
  readonly jsonBytesPerUnit: number;
  /** The same two of prose. */
  readonly proseTokensPerUnit: number;
  readonly proseJsonBytesPerUnit: number;
  /** Tokens of a first request without its text. */
  readonly frameTokens: number;
  /** Tokens a turn adds: the reply, the result of its call, what the template puts around them. */
  readonly turnTokens: number;
}

const SAMPLE_UNITS = 40_000;

/** Asks a gateway. */
export async function measureSizes(url: string): Promise<PromptSizes> {
  const count = async (path: string, body: unknown) => (await postJson<{ count: number }>(url + path, body)).count;
  const text = promptText(SAMPLE_UNITS, 0);
  const prose = proseText(SAMPLE_UNITS, 0);
  const [sample, proseSample, frame, increment] = await Promise.all([
    count("/tokenize", { prompt: text }),
    count("/tokenize", { prompt: prose }),
    count("/tokenize", { messages: firstMessages(""), tools: AGENT_TOOLS }),
    count("/tokenize/increment", {
      messages: [],
      appended: [AgentConversation.result("call_0")],
      tools: AGENT_TOOLS,
      closed: true,
    }),
  ]);
  return {
    tokensPerUnit: sample / SAMPLE_UNITS,
    jsonBytesPerUnit: JSON.stringify(text).length / SAMPLE_UNITS,
    proseTokensPerUnit: proseSample / SAMPLE_UNITS,
    proseJsonBytesPerUnit: JSON.stringify(prose).length / SAMPLE_UNITS,
    frameTokens: frame,
    turnTokens: NULL_REPLY_IDS.length + increment,
  };
}

/** A conversation whose prompts have so many tokens on average over its turns. */
export function conversationOf(
  sizes: PromptSizes,
  options: { readonly promptTokens: number; readonly turns: number; readonly seed: number },
): AgentConversation {
  const growth = sizes.turnTokens * options.turns;
  const tokens = Math.max(1, options.promptTokens - growth / 2 - sizes.frameTokens);
  const text = promptText(Math.ceil(tokens / sizes.tokensPerUnit), options.seed);
  return AgentConversation.of(firstMessages(text));
}
