/** DeepSeek V3.1: name and argument object, each call and all calls within markers. */

import { JSON_ARGUMENTS } from "../call_body.ts";
import { DEEPSEEK_STOPS } from "../stop_tokens.ts";
import { TaggedReader, type TaggedSyntax } from "../tagged_machine.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: TaggedSyntax = {
  wrapper: { start: "<｜tool▁calls▁begin｜>", end: "<｜tool▁calls▁end｜>" },
  start: ["<｜tool▁call▁begin｜>"],
  end: "<｜tool▁call▁end｜>",
  head: { stop: /[<{\n]/g, pattern: /^(\S+)$/, then: [{ literal: "<｜tool▁sep｜>", required: true }] },
  value: JSON_ARGUMENTS,
};

export const DEEPSEEKV31: ToolCallFormat = {
  names: ["deepseekv31"],
  stopTokens: DEEPSEEK_STOPS,
  machine: { type: "blocks", reader: (context) => new TaggedReader(context, SYNTAX) },
};
