/** Every field of SGLang's `/generate` that is known here, with a value that is not its default, and what drops it. */

/** A field. Of two values of one field each has an entry. */
export interface RequestField {
  readonly name: string;
  readonly value: unknown;
  /** Whether sglang-router 0.3.2 leaves it out on the way. smg 1.13.0 sends every body on as it came. */
  readonly dropped?: true;
}

/** Beside `input_ids`. */
export const TOP_FIELDS: readonly RequestField[] = [
  { name: "rid", value: "0123456789abcdef0123456789abcdef-0000" },
  { name: "return_logprob", value: true },
  { name: "logprob_start_len", value: -1 },
  { name: "logprob_start_len", value: 7 },
  { name: "top_logprobs_num", value: 20 },
  { name: "token_ids_logprob", value: [1, 2, 151644] },
  { name: "return_text_in_logprobs", value: true },
  { name: "stream", value: true },
  { name: "return_hidden_states", value: true },
  { name: "modalities", value: ["image"] },
  { name: "lora_path", value: "adapter" },
  { name: "lora_id", value: "adapter" },
  { name: "custom_logit_processor", value: "processor" },
  { name: "data_parallel_rank", value: 1 },
  { name: "background", value: true },
  { name: "conversation_id", value: "c" },
  { name: "priority", value: 1 },
  { name: "extra_key", value: "k" },
  { name: "no_logs", value: true },
  { name: "log_metrics", value: false },
  { name: "custom_labels", value: { a: "b" } },
  { name: "return_bytes", value: true },
  { name: "return_entropy", value: true },
  { name: "bootstrap_host", value: "h" },
  { name: "bootstrap_room", value: 1 },
  { name: "return_routed_experts", value: true, dropped: true },
  { name: "routed_experts_start_len", value: 1, dropped: true },
  { name: "routed_dp_rank", value: 1, dropped: true },
  { name: "return_prompt_token_ids", value: true, dropped: true },
  { name: "return_sampling_mask", value: true, dropped: true },
  { name: "return_indexer_topk", value: true, dropped: true },
  { name: "return_flat_raw_top_logprobs", value: true, dropped: true },
  { name: "cache_salt", value: "s", dropped: true },
  { name: "session_id", value: "s", dropped: true },
  { name: "routing_key", value: "k", dropped: true },
  { name: "require_reasoning", value: true, dropped: true },
  { name: "max_thinking_tokens", value: 4, dropped: true },
];

/** In `sampling_params`. */
export const SAMPLING_FIELDS: readonly RequestField[] = [
  { name: "max_new_tokens", value: 131_071 },
  { name: "max_new_tokens", value: 0 },
  { name: "min_new_tokens", value: 1 },
  { name: "temperature", value: 1 },
  { name: "temperature", value: 0.7 },
  { name: "top_p", value: 0.95 },
  { name: "top_k", value: -1 },
  { name: "top_k", value: 20 },
  { name: "min_p", value: 0.05 },
  { name: "frequency_penalty", value: 0.1 },
  { name: "presence_penalty", value: -0.1 },
  { name: "repetition_penalty", value: 1.05 },
  { name: "stop", value: ["</done>", "\n\n"] },
  { name: "stop_token_ids", value: [151645, 151643] },
  { name: "ignore_eos", value: true },
  { name: "skip_special_tokens", value: false },
  { name: "no_stop_trim", value: true },
  { name: "json_schema", value: '{"type":"object"}' },
  { name: "regex", value: "a+" },
  { name: "ebnf", value: 'root ::= "a"' },
  { name: "sampling_seed", value: 9_007_199_254_740_991 },
  { name: "n", value: 1 },
  { name: "structural_tag", value: "{}", dropped: true },
  { name: "logit_bias", value: { "5": 2.5 }, dropped: true },
  { name: "stop_regex", value: ["a+"], dropped: true },
  { name: "custom_params", value: { a: 1 }, dropped: true },
  { name: "spaces_between_special_tokens", value: false, dropped: true },
  { name: "stream_interval", value: 2, dropped: true },
];
