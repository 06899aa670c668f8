/** Inkling: messages whose content type says what they are; a call is a JSON object with name and `args`. */

import { CallBodyReader, jsonCall } from "../call_body.ts";
import type { ChannelMessage, ChannelSyntax } from "../channel_syntax.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const START = "<|message_model|>";
const CALL = "<|content_invoke_tool_json|>";
const THINKING = "<|content_thinking|>";
const CONTENT_TYPES = [THINKING, "<|content_text|>", CALL];
const END = "<|end_message|>";
const END_SAMPLING = "<|content_model_end_sampling|>";

function messageOf(header: string, end: string): ChannelMessage {
  if (end === CALL) return { type: "call", name: header.replace(START, "").trim() };
  return { type: end === THINKING ? "reasoning" : "content" };
}

export const INKLING_CHANNELS: ChannelSyntax = {
  headerStarts: [START, ...CONTENT_TYPES],
  headerParts: [],
  headerEnds: CONTENT_TYPES,
  opening: { whole: /^[\w.-]{1,128}$/, part: /^[\w.-]{0,128}$/ },
  ends: [END],
  framing: [END_SAMPLING],
  messageOf,
  callReader(context) {
    const value = jsonCall({ type: "named", name: ["name"], arguments: ["args", "arguments", "parameters"] });
    const body = new CallBodyReader(context, { value, ends: [END], followers: [START, END_SAMPLING] });
    return { inner: null, readMessage: (block, from, name) => body.readAlone(block, from, name) };
  },
};

export const INKLING: ToolCallFormat = {
  names: ["inkling"],
  stopTokens: [],
  machine: { type: "channels", channels: INKLING_CHANNELS },
};
