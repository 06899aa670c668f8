/** A real agent in a few lines: the stock OpenAI client, a loop, tools. It does not know that it is being recorded. */

import type OpenAI from "openai";
import { TOOLS, type Workshop } from "./workshop.ts";

const MOST_TURNS = 20;
const FREE_TOKENS = 32;

/** Works on the job until the model answers without a call, then asks for one word more. Tells each step. */
export async function runAgent(
  client: OpenAI,
  job: string,
  workshop: Workshop,
  tell: (text: string) => void,
): Promise<void> {
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
    { role: "system", content: "You are a careful programmer. Use the tools; work in small steps." },
    { role: "user", content: job },
  ];
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const completion = await client.chat.completions.create({ model: "default", messages, tools: TOOLS });
    const message = completion.choices[0]?.message;
    if (message === undefined) throw new Error("The model gave no choice");
    messages.push(message);
    const calls = (message.tool_calls ?? []).filter((call) => call.type === "function");
    if (calls.length === 0) {
      tell(message.content ?? "");
      messages.push({ role: "user", content: "Anything else?" });
      tell(await streamedWords(client, messages));
      return;
    }
    for (const call of calls) {
      const result = await workshop.call(call.function.name, JSON.parse(call.function.arguments));
      tell(`${call.function.name}(${shorten(call.function.arguments)}) → ${shorten(result)}`);
      messages.push({ role: "tool", tool_call_id: call.id, content: result });
    }
  }
  throw new Error(`The agent was not done after ${MOST_TURNS} turns`);
}

/** A turn that no script answers, streamed and cut by its token limit: a model's own words, with real probabilities. */
async function streamedWords(client: OpenAI, messages: OpenAI.Chat.ChatCompletionMessageParam[]): Promise<string> {
  const request = { model: "default", messages, tools: TOOLS, max_tokens: FREE_TOKENS, stream: true } as const;
  let words = "";
  for await (const chunk of await client.chat.completions.create(request)) {
    words += chunk.choices[0]?.delta.content ?? "";
  }
  return shorten(words);
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}
