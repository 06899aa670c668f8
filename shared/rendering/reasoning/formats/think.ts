/** `<think>` ... `</think>`: most models. They differ in when a template opens the block, which is not read here. */

import {
  CHATML_STOPS,
  DEEPSEEK_STOPS,
  GLM_STOPS,
  KIMI_STOPS,
  LLAMA_STOPS,
  MINIMAX_STOPS,
} from "../../tool_calls/stop_tokens.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const THINK: ReasoningFormat = {
  names: [
    "qwen3",
    "qwen3-thinking",
    "deepseek-r1",
    "deepseek-v3",
    "deepseek-v4",
    "glm45",
    "interns1",
    "kimi_k2",
    "mimo",
    "minimax",
    "nemotron_3",
    "poolside_v1",
    "step3",
    "step3p5",
  ],
  stopTokens: [CHATML_STOPS, DEEPSEEK_STOPS, GLM_STOPS, KIMI_STOPS, LLAMA_STOPS, MINIMAX_STOPS].flat(),
  syntax: { type: "tags", starts: ["<think>"], ends: ["</think>"] },
};
