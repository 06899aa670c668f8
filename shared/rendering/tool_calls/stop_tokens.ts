/** The tokens with which models end a completion, by family. Which of them end a request's completion is the model's affair. */

/** ChatML: Qwen, Hermes and many others. */
export const CHATML_STOPS: readonly string[] = ["<|im_end|>", "<|endoftext|>"];

/** DeepSeek and Step. */
export const DEEPSEEK_STOPS: readonly string[] = ["<｜end▁of▁sentence｜>"];

/** GLM: the next speaker's role ends the completion. */
export const GLM_STOPS: readonly string[] = ["<|user|>", "<|observation|>", "<|endoftext|>"];

/** MiniMax. */
export const MINIMAX_STOPS: readonly string[] = ["[e~["];

/** Kimi. */
export const KIMI_STOPS: readonly string[] = ["<|im_end|>", "[EOS]"];

/** Llama 3 and 4. */
export const LLAMA_STOPS: readonly string[] = [
  "<|eot_id|>",
  "<|eom_id|>",
  "<|end_of_text|>",
  "<|eot|>",
  "<|eom|>",
];

/** Gemma. */
export const GEMMA_STOPS: readonly string[] = ["<turn|>", "<end_of_turn>"];

/** Hunyuan. */
export const HUNYUAN_STOPS: readonly string[] = ["<|eos|>"];

/** Mistral and GigaChat. */
export const SENTENCEPIECE_STOPS: readonly string[] = ["</s>"];
