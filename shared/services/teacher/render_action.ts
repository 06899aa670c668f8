/** A decision as the tokens with which a model would have made it: targets for cross entropy. It samples nothing. */

import { VerbatimError } from "../../core/errors.ts";
import type { CanonicalAction } from "../../core/canonical_action.ts";
import type { AssistantMessage, Conversation, Message } from "../../core/message.ts";
import type { Renderer } from "../../ports/renderer.ts";
import type { Tokenizer } from "../../ports/tokenizer.ts";
import { countCalls } from "../generate.ts";

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
  const idsOf = async (after: readonly Message[]) => {
    const messages = [...conversation.messages, ...after];
    const rendered = { ...given, addGenerationPrompt: after.length === 0 };
    return (await renderer.renderPrompt({ ...conversation, messages }, rendered)).ids;
  };
  const reply = replyOf(action, renderer, { conversation, priorCalls });
  const before = await idsOf([]);
  const whole = await idsOf([reply]);
  const isStop = (id: number) => renderer.stopTokenIds.includes(id);
  const target = continuation(before, whole, renderer.tokenizer);
  if (target === null) {
    throw unsupported("The template does not write a reply as a continuation of its generation prompt");
  }
  const end = target.findLastIndex(isStop) + 1;
  if (end > 0) return target.slice(0, end);
  // Where a template ends no reply, what begins the next message does.
  const { tools, settings } = conversation;
  const next = {
    appended: [nextAfter(reply)],
    tools,
    settings,
    calls: reply.toolCalls,
    lastToken: target.at(-1) ?? null,
  };
  const [first] = (await renderer.renderIncrement(next, given)).ids;
  if (first !== undefined && isStop(first)) return Uint32Array.of(...target, first);
  throw unsupported("The template does not end a reply with a token that stops the model");
}

/** Most tokens in which a prompt's end may be written otherwise once a reply follows it: a tokenizer's merges reach no farther. */
const LONGEST_SEAM = 4;

/**
 * What `whole` says after `before`, or null where it does not begin as that does. The tokens of `before` stand: a token
 * of `whole` that reaches across its end (two line breaks that are one) is taken apart, since a model can only go on
 * from what it was given.
 */
function continuation(before: Uint32Array, whole: Uint32Array, tokenizer: Tokenizer): Uint32Array | null {
  const found = before.findIndex((id, at) => whole[at] !== id);
  const seam = found === -1 ? before.length : found;
  if (seam === before.length) return whole.subarray(seam);
  if (before.length - seam > LONGEST_SEAM) return null;
  const given = tokenizer.decode(before.subarray(seam));
  for (let end = seam + 1; end <= Math.min(whole.length, seam + LONGEST_SEAM); end++) {
    if (tokenizer.specialIds.has(whole[end - 1]!)) return null;
    const text = tokenizer.decode(whole.subarray(seam, end));
    if (text.startsWith(given)) {
      const rest = tokenizer.encode(text.slice(given.length));
      return Uint32Array.of(...rest, ...whole.subarray(end));
    }
    if (!given.startsWith(text)) return null;
  }
  return null;
}

/** A message that may follow a reply: the results of its calls, or another question. */
function nextAfter(reply: AssistantMessage): Message {
  const source = reply.source + 1;
  const [call] = reply.toolCalls;
  if (call === undefined) return { role: "user", content: "?", source };
  return { role: "tool", content: "?", toolCallId: call.id, source };
}

function unsupported(message: string): VerbatimError {
  return new VerbatimError("unsupported", message);
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
