/** Muse: messages by recipient; a message to a function holds elements. Such elements elsewhere are calls, too. */

import type { ChannelMessage, ChannelSyntax } from "../channel_syntax.ts";
import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax } from "../element_syntax.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const START = "<|start|>";
const ENDS = ["<|eom|>", "<|eot|>"];
const WRAPPER = { start: "<atem:function_calls>", end: "</atem:function_calls>" };

const SYNTAX: ElementSyntax = {
  wrapper: WRAPPER,
  call: { open: "<atem:invoke name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
  callEnd: "</atem:invoke>",
  argument: { open: "<atem:parameter name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
  valueEnd: "</atem:parameter>",
  bounds: [START, ...ENDS],
};

function messageOf(header: string): ChannelMessage {
  const recipient = /(?:^|\s)to=(\S+)/.exec(header)?.[1] ?? "user";
  if (recipient.startsWith("functions.")) return { type: "call", name: recipient };
  return { type: recipient === "self" ? "reasoning" : "content" };
}

export const MUSE_CHANNELS: ChannelSyntax = {
  headerStarts: [START],
  headerParts: [],
  headerEnds: ["<|message|>"],
  opening: { whole: /^\s{0,16}to=\S{1,256}\s{0,16}$/, part: /^\s{0,16}(?:t|to|to=\S{0,256}\s{0,16})?$/ },
  ends: ENDS,
  framing: [],
  messageOf,
  callReader(context) {
    const elements = new ElementReader(context, SYNTAX);
    return {
      inner: elements,
      *readMessage(block) {
        const separators = [WRAPPER.start, WRAPPER.end];
        block.markup();
        return yield* elements.readWithin(block, { ends: ENDS, bounds: [START], separators });
      },
    };
  },
};

export const MUSE: ToolCallFormat = {
  names: ["muse"],
  stopTokens: [],
  machine: { type: "channels", channels: MUSE_CHANNELS },
};
