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
  // A recipient may also be named where the generation prompt left off: within the header that it began.
  opening: {
    whole: /^ ?to=[^\s<]{1,128}<\|channel\|>[^<]{1,64}(?:<\|constrain\|>[^<]{1,64})?$/,
    part: /^ ?(?:t|to|to=[^\s<]{0,128}(?:<[^]{0,160})?)?$/,
  },
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
