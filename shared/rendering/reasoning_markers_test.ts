import assert from "node:assert/strict";
import { opensReasoning } from "./reasoning_markers.ts";

Deno.test("opensReasoning looks at the end of the prompt alone", () => {
  const cases: [string, string | null, boolean][] = [
    ["<|im_start|>assistant\n<think>\n", "qwen3", true],
    ["<|im_start|>assistant\n<think>", "Qwen3", true],
    ["<|im_start|>assistant\n<think>\n\n</think>\n\n", "qwen3", false],
    ["<think> was written above\n<|im_start|>assistant\n", "qwen3", false],
    ["<|im_start|>assistant\n<think>\n", null, false],
    ["<|im_start|>assistant\n<think>\n", "gpt-oss", false],
    ["<|hy_Assistant|><think:opensource>", "hunyuan", true],
    ["◁think▷", "kimi", true],
    ["<|open|>think<|sep|>", "kimi_k3", true],
    ["[THINK]", "mistral", true],
    ["", "qwen3", false],
  ];
  for (const [prompt, parser, wanted] of cases) assert.equal(opensReasoning(prompt, parser), wanted, prompt);
});
