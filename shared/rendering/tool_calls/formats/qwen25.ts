/** Qwen 2.5, Qwen 3 and Hermes: `<tool_call>{"name", "arguments"}</tool_call>`. Trinity writes the same. */

import { COMMON_KEYS } from "../json_call.ts";
import { TaggedJsonReader, type TaggedJsonSyntax } from "../tagged_json_machine.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: TaggedJsonSyntax = {
  wrapper: null,
  starts: [["<tool_call>"]],
  end: "</tool_call>",
  head: null,
  keys: COMMON_KEYS,
};

export const QWEN25: ToolCallFormat = {
  names: ["qwen25", "qwen", "hermes", "trinity"],
  stopTokens: ["<|im_end|>", "<|endoftext|>"],
  reader: (context) => new TaggedJsonReader(context, SYNTAX),
};
