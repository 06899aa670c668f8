/** A decision as the tokens with which a model would have made it: targets for cross entropy. It samples nothing. */

import { VerbatimError } from "../core/errors.ts";
import type { CanonicalAction } from "../core/canonical_action.ts";
import type { AssistantMessage, Conversation } from "../core/message.ts";
import type { Renderer } from "../ports/renderer.ts";
import { countCalls } from "./generate.ts";

/** A place that any reply may follow, where the conversation itself is not at hand or need not be rendered. */
export const ANYWHERE: Conversation = {
  messages: [{ role: "user", content: "?", source: 0 }],
  tools: [],
  settings: {},
};

/**
 * The ids that follow the generation prompt, the token that ends the turn among them, in this renderer's own format.
 * `unsupported` where the template writes a finished reply otherwise than as a continuation of its generation prompt.
 */
export async function renderAction(
  action: CanonicalAction,
  renderer: Renderer,
  options: {
    readonly conversation?: Conversation;
    /** Calls before it, where the conversation given does not hold them. */
    readonly priorCalls?: number;
    readonly signal?: AbortSignal;
  } = {},
): Promise<Uint32Array> {
  const conversation = options.conversation ?? ANYWHERE;
  const priorCalls = options.priorCalls ?? countCalls(conversation);
  const given = options.signal === undefined ? {} : { signal: options.signal };
  const reply = replyOf(action, renderer, { conversation, priorCalls });
  const before = (await renderer.renderPrompt(conversation, given)).ids;
  const whole = (await renderer.renderPrompt(
    { ...conversation, messages: [...conversation.messages, reply] },
    { ...given, addGenerationPrompt: false },
  )).ids;
  const target = whole.subarray(before.length);
  const end = target.findLastIndex((id) => renderer.stopTokenIds.includes(id)) + 1;
  if (end === 0 || before.some((id, at) => whole[at] !== id)) {
    throw new VerbatimError(
      "unsupported",
      "The template does not write a reply as a continuation of its generation prompt",
    );
  }
  return target.slice(0, end);
}

function replyOf(
  action: CanonicalAction,
  renderer: Renderer,
  { conversation, priorCalls }: { readonly conversation: Conversation; readonly priorCalls: number },
): AssistantMessage {
  const calls = action.kind === "message" ? [] : [{
    // No id is rendered that has to be found again.
    id: renderer.callId({ name: action.name, priorCalls, random: (digits) => "0".repeat(digits) }),
    name: action.name,
    arguments: JSON.stringify(action.arguments),
  }];
  return {
    role: "assistant",
    content: action.text ?? "",
    reasoning: action.reasoning ?? null,
    toolCalls: calls,
    form: "",
    source: conversation.messages.length,
  };
}
