/** gpt-oss: Harmony messages. A message to a recipient is a call; its body is the argument object. */

import { CallBodyReader, JSON_ARGUMENTS } from "../call_body.ts";
import type { ChannelMessage, ChannelSyntax } from "../channel_syntax.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const STARTS = ["<|start|>", "<|channel|>"];
const ENDS = ["<|end|>", "<|call|>", "<|return|>"];

/** Recipients that are no tools. */
const SPEAKERS: ReadonlySet<string> = new Set(["assistant", "user", "all"]);

function messageOf(header: string): ChannelMessage {
  const words = header.replace(/<\|constrain\|>.*$/s, "");
  const recipient = /(?:^|\s)to=([^\s<]+)/.exec(words)?.[1];
  if (recipient !== undefined && !SPEAKERS.has(recipient)) {
    return { type: "call", name: recipient.replace(/^functions\.(?=.)/, "") };
  }
  return { type: /<\|channel\|>\s*analysis\b/.test(words) ? "reasoning" : "content" };
}

export const HARMONY: ChannelSyntax = {
  headerStarts: STARTS,
  headerParts: ["<|channel|>", "<|constrain|>"],
  headerEnds: ["<|message|>"],
  opening: null,
  ends: ENDS,
  framing: [],
  messageOf,
  callReader(context) {
    const body = new CallBodyReader(context, { value: JSON_ARGUMENTS, ends: ENDS, followers: STARTS });
    return { inner: null, readMessage: (block, from, name) => body.readAlone(block, from, name) };
  },
};

export const GPT_OSS: ToolCallFormat = {
  names: ["gpt-oss"],
  stopTokens: [],
  machine: { type: "channels", channels: HARMONY },
};
