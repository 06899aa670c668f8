/** An agent as scaffolds are: OpenAI's own client and a tool loop. It keeps what it was told, to be held against the record. */

import assert from "node:assert/strict";
import type OpenAI from "openai";
import type { Body } from "../e2e/gateway_client.ts";
import { tool } from "../e2e/replies.ts";

/** What an agent heard. */
export interface AgentRun {
  /** The ids of each answer. */
  readonly heard: readonly (readonly number[])[];
  /** The text of the last one. */
  readonly says: string;
}

/** How it works. */
export interface AgentOptions {
  readonly job: string;
  readonly stream?: boolean;
  /** A stream that breaks off is asked for again, so many times; whole answers the client tries again itself. */
  readonly streamRetries?: number;
  /** Before each turn. */
  readonly onTurn?: (turn: number) => Promise<void> | void;
}

interface Answer {
  readonly message: Body;
  readonly ids: readonly number[];
}

const TOOLS = [tool("bash", ["command"])];
const MOST_TURNS = 5;
const MOST_TOKENS = 64;

/** Works until the model calls no tool any more. */
export async function runAgent(client: OpenAI, options: AgentOptions): Promise<AgentRun> {
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
    { role: "system", content: "You are a careful programmer." },
    { role: "user", content: options.job },
  ];
  const heard: (readonly number[])[] = [];
  for (;;) {
    await options.onTurn?.(heard.length);
    const { message, ids } = await ask(client, messages, options);
    heard.push(ids);
    messages.push(message);
    const calls: Body[] = message.tool_calls ?? [];
    if (calls.length === 0 || heard.length === MOST_TURNS) return { heard, says: message.content ?? "" };
    for (const call of calls) messages.push({ role: "tool", tool_call_id: call.id, content: "README.md" });
  }
}

async function ask(
  client: OpenAI,
  messages: OpenAI.Chat.ChatCompletionMessageParam[],
  { stream = false, streamRetries = 0 }: AgentOptions,
): Promise<Answer> {
  const request = { model: "default", messages, tools: TOOLS, max_tokens: MOST_TOKENS, ...{ return_token_ids: true } };
  if (!stream) {
    const { choices: [choice] }: Body = await client.chat.completions.create(request);
    return { message: choice.message, ids: choice.token_ids };
  }
  for (let attempt = 0;; attempt++) {
    try {
      return await heardToItsEnd(client, request);
    } catch (broken) {
      if (attempt === streamRetries) throw broken;
    }
  }
}

/** A stream that ends without a finish has broken off. */
async function heardToItsEnd(
  client: OpenAI,
  request: Omit<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming, "stream">,
): Promise<Answer> {
  const stream = client.chat.completions.stream(request);
  let ids: readonly number[] | null = null;
  stream.on("chunk", ({ choices: [choice] }: Body) => ids = choice?.token_ids ?? ids);
  const { choices: [choice] } = await stream.finalChatCompletion();
  assert.ok(choice !== undefined && ids !== null);
  return { message: choice.message, ids };
}
