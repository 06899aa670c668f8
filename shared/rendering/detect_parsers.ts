/**
 * Which parsers fit a model, from its chat template and vocabulary: ordered tables, the first match wins. The order is that
 * of SGLang's `auto`; after it come formats that `auto` leaves without a parser. It does not know the parsers themselves.
 */

import { detectThinkingSwitch, type ThinkingSwitch } from "./thinking_switch.ts";

/** What there is to look at. */
export interface ParserEvidence {
  readonly chatTemplate: string;
  /** Added tokens of the vocabulary. */
  readonly addedTokens: Iterable<string>;
}

export interface DetectedParsers {
  /** Null: calls are plain text to this model. */
  readonly toolCallParser: string | null;
  /** Null: the model writes no reasoning of its own. */
  readonly reasoningParser: string | null;
}

interface Signs {
  readonly template: string;
  readonly tokens: ReadonlySet<string>;
  readonly thinking: ThinkingSwitch;
}

type Rule = readonly [parser: string, matches: (signs: Signs) => boolean];

const TOOL_CALL_RULES: readonly Rule[] = [
  ["apertus2509", isApertus],
  ["gemma4", isGemma],
  ["gpt-oss", isHarmony],
  ["kimi_k2", isKimiK2],
  ["kimi_k3", isKimiK3],
  ["minimax-m3", isMinimaxM3],
  ["minimax-m2", isMinimaxM2],
  ["interns1", isInternS1],
  ["mistral", isMistral],
  ["deepseekv4", isDeepseekV4],
  ["deepseekv32", ({ template }) => template.includes("<｜DSML｜function_calls>")],
  // Both write the same markers; the older one puts arguments into a fenced block.
  ["deepseekv3", (signs) => writesDeepseekCalls(signs) && signs.template.includes("```json")],
  ["deepseekv31", writesDeepseekCalls],
  ["lfm2", isLfm2],
  // GLM 4.7 writes the name right after the marker, 4.5 puts it on a line of its own.
  ["glm47", (signs) => isGlm(signs) && /\{\{[-\s]*['"]<tool_call>['"]\s*[+~]\s*tc\.name/.test(signs.template)],
  ["glm45", isGlm],
  ["minicpm5", isMiniCpm5],
  ["hunyuan", isHunyuan],
  ["poolside_v1", isPoolside],
  ["step3p5", isStep3p5],
  ["step3", isStep3],
  ["glm45", ({ tokens }) => tokens.has("<arg_key>") && tokens.has("<arg_value>")],
  ["mimo", (signs) => isMimo(signs) && writesFunctionXml(signs)],
  ["qwen3_coder", writesFunctionXml],
  ["muse", ({ template }) => template.includes("<atem:function_calls>")],
  ["inkling", ({ template }) => template.includes("<|content_invoke_tool_json|>")],
  ["cohere_command4", ({ template }) => template.includes("<|START_ACTION|>")],
  ["gigachat3", ({ template }) => /function call<\|role_sep\|>|<\|function_call\|>/.test(template)],
  ["pythonic", ({ template }) => template.includes("<|python_start|>")],
  ["llama3", ({ template }) => template.includes("<|python_tag|>") || template.includes("Environment: ipython")],
  ["qwen25", ({ template }) => template.includes("<tool_call>")],
];

const REASONING_RULES: readonly Rule[] = [
  ["apertus2509", isApertus],
  ["gemma4", isGemma],
  ["kimi", ({ template }) => template.includes("◁think▷")],
  ["interns1", isInternS1],
  ["mistral", ({ template }) => template.includes("[THINK]")],
  ["gpt-oss", isHarmony],
  ["kimi_k2", isKimiK2],
  ["kimi_k3", isKimiK3],
  ["nemotron_3", ({ template, thinking }) => template.includes("truncate_history_thinking") && isOnByDefault(thinking)],
  ["glm45", isGlm],
  ["hunyuan", isHunyuan],
  ["poolside_v1", isPoolside],
  ["mimo", isMimo],
  ["minimax-m3", isMinimaxM3],
  ["minimax", isMinimaxM2],
  ["step3p5", isStep3p5],
  ["step3", isStep3],
  ["qwen3", ({ thinking }) => isOnByDefault(thinking)],
  ["deepseek-v4", isDeepseekV4],
  ["deepseek-v3", ({ thinking }) => thinking?.setting === "thinking" && !thinking.byDefault],
  ["muse", ({ template }) => template.includes("<atem:function_calls>")],
  ["inkling", ({ template }) => template.includes("<|content_invoke_tool_json|>")],
  ["cohere_command4", ({ template }) => template.includes("<|END_THINKING|>")],
  // Think tags without a switch: ChatML models are Qwen's kin, the rest DeepSeek's.
  ["qwen3", (signs) => writesThinkTags(signs) && (signs.template.includes("<|im_start|>") || isLfm2(signs))],
  ["deepseek-r1", writesThinkTags],
];

/** The parsers that fit. */
export function detectParsers(evidence: ParserEvidence): DetectedParsers {
  const signs: Signs = {
    template: evidence.chatTemplate,
    tokens: new Set(evidence.addedTokens),
    thinking: detectThinkingSwitch(evidence.chatTemplate),
  };
  return { toolCallParser: firstMatch(TOOL_CALL_RULES, signs), reasoningParser: firstMatch(REASONING_RULES, signs) };
}

function firstMatch(rules: readonly Rule[], signs: Signs): string | null {
  return rules.find(([, matches]) => matches(signs))?.[0] ?? null;
}

function isOnByDefault(thinking: ThinkingSwitch): boolean {
  return thinking?.setting === "enable_thinking" && thinking.byDefault;
}

function isOffByDefault(thinking: ThinkingSwitch): boolean {
  return thinking?.setting === "enable_thinking" && !thinking.byDefault;
}

function isApertus({ tokens }: Signs): boolean {
  return tokens.has("<|inner_prefix|>");
}

function isGemma({ template }: Signs): boolean {
  return template.includes("<|channel>");
}

function isHarmony({ template }: Signs): boolean {
  return template.includes("<|channel|>");
}

function isKimiK2({ tokens }: Signs): boolean {
  return tokens.has("<|tool_calls_section_begin|>");
}

function isKimiK3({ tokens }: Signs): boolean {
  return tokens.has("<|open|>") && tokens.has("<|close|>") && tokens.has("<|sep|>");
}

function isMinimaxM3({ template }: Signs): boolean {
  return template.includes("<mm:think>") || template.includes("]<]minimax[>[");
}

function isMinimaxM2({ template }: Signs): boolean {
  return template.includes("<minimax:tool_call>");
}

function isInternS1({ template }: Signs): boolean {
  return template.includes("default_thinking_sys") || template.includes("<|action_start|>");
}

function isMistral({ template }: Signs): boolean {
  return template.includes("[TOOL_CALLS]");
}

function isDeepseekV4({ template }: Signs): boolean {
  return template.includes("<｜DSML｜tool_calls>");
}

function writesDeepseekCalls({ template }: Signs): boolean {
  return template.includes("<｜tool▁calls▁begin｜>") && template.includes("<｜tool▁sep｜>");
}

function isLfm2({ template, tokens }: Signs): boolean {
  return template.includes("<|tool_call_start|>") || tokens.has("<|tool_call_start|>");
}

function isGlm({ template, tokens, thinking }: Signs): boolean {
  return (template.includes("[gMASK]<sop>") || /(?<!<)\/(?:no)?think/.test(template)) &&
    tokens.has("<tool_call>") && (tokens.has("<|user|>") || tokens.has("<|endoftext|>")) && isOnByDefault(thinking);
}

function isMiniCpm5({ template, tokens }: Signs): boolean {
  return (tokens.has("<function") && tokens.has("<param")) ||
    (/<function\s+name=/.test(template) && /<param\s+name=/.test(template));
}

/** Hunyuan's markers may carry a suffix (`<tool_calls:opensource>`). */
function isHunyuan({ template, tokens }: Signs): boolean {
  const has = (name: string) =>
    template.includes(`<${name}>`) || tokens.has(`<${name}>`) ||
    [...tokens].some((token) => token.startsWith(`<${name}:`) && token.endsWith(">"));
  return (has("tool_calls") && has("tool_sep")) ||
    (template.includes("reasoning_effort") && template.includes("interleaved_thinking"));
}

function isPoolside(signs: Signs): boolean {
  const { template, tokens, thinking } = signs;
  const has = (marker: string) => template.includes(marker) || tokens.has(marker);
  return has("<arg_key>") && has("<arg_value>") &&
    (template.includes("<tool_call>function-name") || isOffByDefault(thinking)) && !isHunyuan(signs);
}

function isStep3p5(signs: Signs): boolean {
  return /Step-?3(?:\.|p)?[57]/i.test(signs.template) ||
    (signs.template.includes("reasoning_effort") && signs.template.includes("Reasoning: ") && writesFunctionXml(signs));
}

function isStep3({ template }: Signs): boolean {
  return template.includes("<steptml:invoke") ||
    (template.includes("<｜tool_calls_begin｜>") && template.includes("<｜tool_sep｜>"));
}

function isMimo({ thinking }: Signs): boolean {
  return isOffByDefault(thinking);
}

function writesFunctionXml({ template }: Signs): boolean {
  return template.includes("<function=") && template.includes("<parameter=");
}

function writesThinkTags({ template }: Signs): boolean {
  return template.includes("<think>") || template.includes("</think>");
}
