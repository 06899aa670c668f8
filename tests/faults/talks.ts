/** A conversation as each of the three APIs has it: how it is asked for, how an answer reads, and what goes back with the next request. */

import assert from "node:assert/strict";
import type { Body } from "../e2e/gateway_client.ts";
import { joinMessage, joinResponse, readNamedEvents } from "../e2e/named_events.ts";

/** What was sampled, as far as an API tells. */
export interface ToldTokens {
  readonly promptIds: readonly number[];
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
}

/** An answer that ended. */
export interface Said {
  readonly id: string;
  readonly turn: number;
  /** What goes back into the history. */
  readonly reply: readonly Body[];
  /** Ids of its calls. */
  readonly calls: readonly string[];
  /** Null where the API has no field for them. */
  readonly tokens: ToldTokens | null;
}

/** What the text of a stream shows. */
export interface SeenStream {
  /** Of the answer; null before its first frame. */
  readonly id: string | null;
  /** Whether its finish is in it, which is sent after the commit alone. */
  readonly finished: boolean;
  /** Whether nothing more is to come. */
  readonly ended: boolean;
  /** The words of an error that came as a frame. */
  readonly error: string | null;
}

/** One conversation. */
export interface Talk {
  readonly path: string;
  headers(key: string): Record<string, string>;
  body(options: { readonly maxTokens: number; readonly stream: boolean }): Body;
  whole(answer: Body, headers: Headers): Said;
  see(text: string): SeenStream;
  /** Of a stream that ended. */
  streamed(text: string): Promise<Said>;
  /** Takes an answer and what follows it: a result for each call, then words, where there are any. */
  goOn(said: Said, next: { readonly result: string; readonly words: string | null }): void;
  /** From now on its first message reads otherwise. */
  rewrite(): void;
}

const SYSTEM = "You are an agent.";
const PARAMETERS = { type: "object" };

/** A conversation that begins with these words. */
export function startTalk(dialect: "chat" | "messages" | "responses", begin: string): Talk {
  switch (dialect) {
    case "chat":
      return chatTalk([{ role: "system", content: SYSTEM }, { role: "user", content: begin }], { tools: true });
    case "messages":
      return messagesTalk(begin);
    case "responses":
      return responsesTalk(begin);
  }
}

/** One question without tools, in a conversation of its own. */
export function askBeside(words: string): Talk {
  return chatTalk([{ role: "user", content: words }], { tools: false });
}

function chatTalk(messages: Body[], options: { readonly tools: boolean }): Talk {
  const tools = [{ type: "function", function: { name: "look", parameters: PARAMETERS } }];
  return {
    path: "/v1/chat/completions",
    headers: (key) => ({ authorization: `Bearer ${key}` }),
    body: ({ maxTokens, stream }) => ({
      messages,
      ...(options.tools ? { tools } : {}),
      max_tokens: maxTokens,
      stream,
      return_token_ids: true,
      logprobs: true,
    }),
    whole(answer, headers) {
      const [choice] = answer.choices;
      return {
        ...chatSaid(choice.message),
        id: answer.id,
        turn: Number(headers.get("x-verbatim-turn")),
        tokens: {
          promptIds: answer.prompt_token_ids,
          ids: choice.token_ids,
          logprobs: choice.logprobs.content.map((entry: Body) => entry.logprob),
        },
      };
    },
    see(text) {
      const frames = chatFrames(text);
      const error = frames.find((frame) => frame.error !== undefined)?.error ?? null;
      return {
        id: frames.find((frame) => frame.id !== undefined)?.id ?? null,
        finished: frames.some((frame) => frame.choices?.[0]?.finish_reason),
        ended: text.endsWith("data: [DONE]\n\n"),
        error: error === null ? null : JSON.stringify(error),
      };
    },
    streamed(text) {
      const frames = chatFrames(text);
      const message: Body = { role: "assistant", content: "" };
      const logprobs: number[] = [];
      for (const { choices: [choice] } of frames) {
        addDelta(message, choice.delta);
        for (const entry of choice.logprobs?.content ?? []) logprobs.push(entry.logprob);
      }
      if (message.content === "" && message.tool_calls) message.content = null;
      const last = frames.at(-1);
      return Promise.resolve({
        ...chatSaid(message),
        id: last.id,
        turn: last.verbatim.turn,
        tokens: { promptIds: last.prompt_token_ids, ids: last.choices[0].token_ids, logprobs },
      });
    },
    goOn({ reply, calls }, { result, words }) {
      messages.push(...reply, ...calls.map((id) => ({ role: "tool", tool_call_id: id, content: result })));
      if (words !== null) messages.push({ role: "user", content: words });
    },
    rewrite() {
      const first = messages.findIndex(({ role }) => role === "user");
      messages[first] = { role: "user", content: "Begin otherwise." };
    },
  };
}

function chatSaid(message: Body): Pick<Said, "reply" | "calls"> {
  return { reply: [message], calls: (message.tool_calls ?? []).map((call: Body) => call.id) };
}

function addDelta(message: Body, delta: Body): void {
  if (delta.content) message.content += delta.content;
  if (delta.reasoning_content) {
    message.reasoning_content = (message.reasoning_content ?? "") + delta.reasoning_content;
  }
  for (const { index, ...call } of delta.tool_calls ?? []) (message.tool_calls ??= [])[index] = call;
}

/** Whole frames of data, but for the last word. */
function chatFrames(text: string): Body[] {
  const events = text.split("\n\n").slice(0, -1).filter((event) => event.startsWith("data: "));
  return events.map((event) => event.slice(6)).filter((data) => data !== "[DONE]").map((data) => JSON.parse(data));
}

function messagesTalk(begin: string): Talk {
  const messages: Body[] = [{ role: "user", content: begin }];
  function said(message: Body, turn: number): Said {
    const calls = message.content.filter((block: Body) => block.type === "tool_use").map((block: Body) => block.id);
    return { id: message.id, turn, reply: [{ role: "assistant", content: message.content }], calls, tokens: null };
  }
  return {
    path: "/v1/messages",
    headers: (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
    body: ({ maxTokens, stream }) => ({
      system: SYSTEM,
      messages,
      tools: [{ name: "look", input_schema: PARAMETERS }],
      max_tokens: maxTokens,
      stream,
    }),
    whole: (answer, headers) => said(answer, Number(headers.get("x-verbatim-turn"))),
    see: (text) =>
      seeNamed(text, {
        idOf: (event) => event.message?.id,
        finish: ["message_delta"],
        end: ["message_stop"],
        error: ["error"],
      }),
    async streamed(text) {
      const { events } = await readNamedEvents(new Response(text));
      return said(joinMessage(events), events.find((event) => event.type === "message_delta").verbatim.turn);
    },
    goOn({ reply, calls }, { result, words }) {
      const results = calls.map((id) => ({ type: "tool_result", tool_use_id: id, content: result }));
      messages.push(...reply, {
        role: "user",
        content: [...results, ...(words === null ? [] : [{ type: "text", text: words }])],
      });
    },
    rewrite() {
      messages[0] = { role: "user", content: "Begin otherwise." };
    },
  };
}

function responsesTalk(begin: string): Talk {
  const input: Body[] = [{ role: "user", content: begin }];
  function said(response: Body, turn: number): Said {
    const calls = response.output.filter((item: Body) => item.type === "function_call");
    return {
      id: response.id,
      turn,
      reply: response.output,
      calls: calls.map((item: Body) => item.call_id),
      tokens: null,
    };
  }
  return {
    path: "/v1/responses",
    headers: (key) => ({ authorization: `Bearer ${key}` }),
    body: ({ maxTokens, stream }) => ({
      instructions: SYSTEM,
      input,
      tools: [{ type: "function", name: "look", parameters: PARAMETERS }],
      max_output_tokens: maxTokens,
      stream,
    }),
    whole: (answer, headers) => said(answer, Number(headers.get("x-verbatim-turn"))),
    see: (text) =>
      seeNamed(text, {
        idOf: (event) => event.response?.id,
        finish: ["response.completed", "response.incomplete"],
        end: ["response.completed", "response.incomplete"],
        error: ["response.failed", "error"],
      }),
    async streamed(text) {
      const { events } = await readNamedEvents(new Response(text));
      return said(joinResponse(events), events.at(-1).verbatim.turn);
    },
    goOn({ reply, calls }, { result, words }) {
      input.push(...reply, ...calls.map((id) => ({ type: "function_call_output", call_id: id, output: result })));
      if (words !== null) input.push({ role: "user", content: words });
    },
    rewrite() {
      input[0] = { role: "user", content: "Begin otherwise." };
    },
  };
}

function seeNamed(
  text: string,
  names: {
    readonly idOf: (event: Body) => string | undefined;
    readonly finish: readonly string[];
    readonly end: readonly string[];
    readonly error: readonly string[];
  },
): SeenStream {
  const events: Body[] = text.split("\n\n").slice(0, -1).flatMap((event) => {
    const [, data] = /^event: .+\ndata: (.+)$/.exec(event) ?? [];
    return data === undefined ? [] : [JSON.parse(data)];
  });
  const error = events.find(({ type }) => names.error.includes(type));
  const begun = events.find((event) => names.idOf(event) !== undefined);
  assert.ok(begun !== undefined || events.length === 0 || error !== undefined, "a stream begins with its id");
  return {
    id: begun === undefined ? null : names.idOf(begun) ?? null,
    finished: events.some(({ type }) => names.finish.includes(type)),
    ended: events.some(({ type }) => names.end.includes(type)),
    error: error === undefined ? null : JSON.stringify(error.response?.error ?? error),
  };
}
