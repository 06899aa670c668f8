/** Streams of answers that are rarely seen: reasoning after text, nothing at all, failures before and after the start. */

import assert from "node:assert/strict";
import { VerbatimError } from "../../shared/core/errors.ts";
import { TokenSeries } from "../../shared/core/token_series.ts";
import type { Answer, AnswerDelta, CallEvent } from "../../shared/services/turns/shared_call.ts";
import type { Body } from "../../tests/e2e/harness.ts";
import { joinMessage, joinResponse } from "../../tests/e2e/named_events.ts";
import { messagesFrames } from "./messages_frames.ts";
import { ResponseFrames } from "./responses_frames.ts";
import type { ResponseView } from "./responses_answer.ts";

const ANSWER_ID = "0123456789abcdef01234567";
const VIEW: ResponseView = { summary: false, encrypted: false, request: {} };
const CALL = { id: "call_1", name: "look", arguments: '{"a": 1}' };

/** The events of an answer that said this. */
function eventsOf(said: readonly AnswerDelta[]): CallEvent[] {
  const text = (type: "reasoning" | "content") =>
    said.flatMap((delta) => delta.type === type ? [delta.text] : []).join("");
  const answer: Answer = {
    turn: 0,
    answerId: ANSWER_ID,
    createdAtS: 1,
    model: "m",
    reply: {
      role: "assistant",
      content: text("content"),
      reasoning: text("reasoning") === "" ? null : text("reasoning"),
      toolCalls: said.some((delta) => delta.type === "tool_call") ? [CALL] : [],
      form: "",
      source: -1,
    },
    finishReason: "stop",
    stopString: null,
    promptTokens: 3,
    cachedTokens: null,
    reasoningTokens: null,
    prompt: TokenSeries.of(Uint32Array.of(1, 2, 3)),
    completionTokens: 1,
    completion: Uint32Array.of(4),
    logprobs: [-1],
    topLogprobs: null,
  };
  const { answerId, createdAtS, model, promptTokens } = answer;
  return [
    { type: "started", answerId, createdAtS, model, promptTokens },
    ...said.map((delta): CallEvent => ({ type: "delta", delta })),
    { type: "end", answer },
  ];
}

async function* streamOf<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items;
}

async function read(frames: AsyncIterable<string>): Promise<Body[]> {
  let text = "";
  for await (const frame of frames) text += frame;
  return text.split("\n\n").slice(0, -1).map((frame) => JSON.parse(frame.slice(frame.indexOf("data: ") + 6)));
}

const LATE: readonly AnswerDelta[] = [
  { type: "reasoning", text: "First." },
  { type: "content", text: "Said" },
  { type: "reasoning", text: "\nSecond." },
  { type: "tool_call", index: 0, ...CALL },
  { type: "content", text: " and done." },
];

Deno.test("messagesFrames puts reasoning that comes after text behind it, calls last", async () => {
  const { content } = joinMessage(await read(messagesFrames(streamOf(eventsOf(LATE)))));
  assert.deepEqual(content.map((block: Record<string, unknown>) => block.thinking ?? block.text ?? block.name), [
    "First.",
    "Said and done.",
    "\nSecond.",
    "look",
  ]);
});

Deno.test("ResponseFrames puts reasoning that comes after the message behind it, calls last", async () => {
  const { output } = joinResponse(await read(new ResponseFrames(VIEW).of(streamOf(eventsOf(LATE)))));
  assert.deepEqual(output.map(({ id }: { id: string }) => id), [
    `rs_${ANSWER_ID}`,
    `msg_${ANSWER_ID}`,
    `rs_${ANSWER_ID}_1`,
    `fc_${ANSWER_ID}_0`,
  ]);
  assert.deepEqual(output.slice(0, 3).map((item: { content: { text: string }[] }) => item.content[0]!.text), [
    "First.",
    "Said and done.",
    "\nSecond.",
  ]);
});

Deno.test("an answer of nothing is a message without blocks, and a response with an empty message", async () => {
  assert.deepEqual(joinMessage(await read(messagesFrames(streamOf(eventsOf([]))))).content, []);
  const { output } = joinResponse(await read(new ResponseFrames(VIEW).of(streamOf(eventsOf([])))));
  assert.deepEqual(output.map((item: { content: { text: string }[] }) => item.content[0]!.text), [""]);
});

Deno.test("ResponseFrames.failure is response.failed once the response was created, an error event before", async () => {
  const error = new VerbatimError("busy", "Later");
  const early = await read(streamOf([new ResponseFrames(VIEW).failure(error)]));
  assert.deepEqual([early[0].type, early[0].sequence_number, early[0].code], ["error", 0, "busy"]);
  const frames = new ResponseFrames(VIEW);
  const seen = await read(frames.of(streamOf(eventsOf(LATE).slice(0, 3))));
  const [failed] = await read(streamOf([frames.failure(error)]));
  assert.deepEqual([failed.type, failed.sequence_number], ["response.failed", seen.length]);
  assert.deepEqual(failed.response.error, { code: "rate_limit_exceeded", message: "Later" });
});
