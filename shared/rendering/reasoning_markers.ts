/** The marker that opens reasoning, by reasoning parser, and whether a prompt ends inside an open block. */

const THINK = /<think>$/;

/** Parsers without an entry open their reasoning in the completion itself (channels) or never. */
const OPENING: ReadonlyMap<string, RegExp> = new Map([
  ["apertus2509", /<\|inner_prefix\|>$/],
  ["cohere_command4", /<\|START_THINKING\|>$/],
  ["deepseek-r1", THINK],
  ["deepseek-v3", THINK],
  ["deepseek-v4", THINK],
  ["gemma4", /<\|channel>thought$/],
  ["glm45", THINK],
  // The marker may carry a suffix that all special tokens of the vocabulary share.
  ["hunyuan", /<think(?::[^<>]+)?>$/],
  ["interns1", THINK],
  ["kimi", /◁think▷$/],
  ["kimi_k2", THINK],
  ["kimi_k3", /<\|open\|>think<\|sep\|>$/],
  ["mimo", THINK],
  ["minimax", THINK],
  ["minimax-append-think", THINK],
  ["minimax-m3", /<mm:think>$/],
  ["mistral", /\[THINK\]$/],
  ["nemotron_3", THINK],
  ["poolside_v1", THINK],
  ["qwen3", THINK],
  ["qwen3-thinking", THINK],
  ["step3", THINK],
  ["step3p5", THINK],
]);

/** No marker with its white space is longer. */
const TAIL_LENGTH = 200;

/**
 * Whether a prompt that ends in a generation prompt leaves the model inside open reasoning: white space aside, the opening
 * marker is the last thing in it. An empty block that is closed again is not open.
 */
export function opensReasoning(prompt: string, reasoningParser: string | null): boolean {
  const marker = reasoningParser === null ? undefined : OPENING.get(reasoningParser.toLowerCase());
  return marker !== undefined && marker.test(prompt.slice(-TAIL_LENGTH).trimEnd());
}
