/**
 * What must hold before a renderer is used, tried out on small conversations: prompts survive encoding, and what is put
 * after a series is what the template itself would put there. It repairs nothing.
 */

import { VerbatimError } from "../core/errors.ts";
import type { AssistantMessage, Conversation, Json, Message, ToolDefinition } from "../core/message.ts";
import type { Renderer } from "../ports/renderer.ts";
import type { Tokenizer } from "../ports/tokenizer.ts";
import type { ConversationText } from "./conversation_text.ts";
import type { IncrementRequest } from "./increment.ts";
import { plain } from "./jinja/text.ts";
import { tokenDifference } from "./token_difference.ts";

export type RendererCheck = Renderer["checks"][number];

export interface CheckedRenderer {
  readonly text: ConversationText;
  readonly tokenizer: Tokenizer;
  /** Whether the template writes a token that closes a turn. */
  readonly closesTurns: boolean;
  /** Whether the model makes calls, so that their results must be appendable. */
  readonly makesCalls: boolean;
  /** Whether it makes several in one reply. */
  readonly callsInParallel: boolean;
  readonly callId: (index: number) => string;
}

const TOOL: ToolDefinition = {
  name: "look_up",
  raw: {
    name: "look_up",
    description: "Looks a word up.",
    parameters: { type: "object", properties: { word: { type: "string" }, limit: { type: "integer" } } },
  },
};
const REASONING = "A thought about the question.";
const UNSUPPORTED = { details: { supported: false } } as const;
const NO_FORM = { source: 0, form: "" } as const;

/** Tries everything. Roles that can't be appended and need not be are refused from then on. */
export function checkRenderer(renderer: CheckedRenderer): RendererCheck[] {
  const checks: RendererCheck[] = [];
  const attempt = (name: string, work: () => Json) => {
    try {
      checks.push({ name, passed: true, details: work() });
    } catch (error) {
      checks.push({ name, passed: false, reason: wordsOf(error) });
    }
  };
  /** For what a template may leave out: the reason is told, and the check passes. */
  const optional = (name: string, work: () => Json, otherwise: (reason: string) => void) => {
    try {
      checks.push({ name, passed: true, details: work() });
    } catch (error) {
      const reason = wordsOf(error);
      otherwise(reason);
      checks.push({ name, passed: true, reason, details: { supported: false } });
    }
  };
  /** For what a template may refuse in words of its own, as it will refuse it then; rendered wrongly it fails. */
  const unlessRefused = (name: string, work: () => Json) => {
    try {
      checks.push({ name, passed: true, details: work() });
    } catch (error) {
      const isRefusal = error instanceof VerbatimError && error.code === "invalid_request";
      checks.push({ name, passed: isRefusal, reason: wordsOf(error), ...(isRefusal ? UNSUPPORTED : {}) });
    }
  };

  attempt("a prompt is encoded as the template wrote it", () => checkPrompt(renderer));
  attempt("a user message can be appended", () => checkAppended(renderer, [user("A second question?")]));
  unlessRefused(
    "an empty reply and an empty message can be followed",
    () => checkAppended(renderer, [user("")], { ...reply(renderer, 0), content: "", reasoning: null }),
  );
  for (
    const [role, message] of [
      ["system", { role: "system", content: "A new rule.", source: 0 }],
      ["assistant", { ...reply(renderer, 0), content: "An example of an answer.", reasoning: null }],
    ] as const
  ) {
    const name = `${role === "system" ? "a system" : "an assistant"} message can be appended`;
    optional(name, () => checkAppended(renderer, [message, user("A second question?")]), (reason) => {
      renderer.text.refuseRole(role, reason);
    });
  }
  const withResults = renderer.makesCalls
    ? attempt
    : (name: string, work: () => Json) => optional(name, work, (reason) => renderer.text.refuseRole("tool", reason));
  withResults("a tool result can be appended", () => checkAppended(renderer, results(renderer, 1), reply(renderer, 1)));
  const inParallel = () => checkAppended(renderer, results(renderer, 2), { ...reply(renderer, 2), content: "" });
  if (renderer.callsInParallel) withResults("consecutive tool results can be appended", inParallel);
  else {
    optional("consecutive tool results can be appended", inParallel, (reason) => {
      renderer.text.refuseParallelCalls(reason);
    });
  }
  const interruption = () =>
    checkAppended(renderer, [...results(renderer, 1), user("A second question?")], reply(renderer, 1));
  const interrupted = "a user message can follow a tool result";
  if (renderer.makesCalls) unlessRefused(interrupted, interruption);
  else optional(interrupted, interruption, () => {});
  optional("results need no function names", () => checkCallNames(renderer), () => renderer.text.needCallNames());
  const withCalls = renderer.makesCalls ? attempt : (name: string, work: () => Json) => optional(name, work, () => {});
  withCalls(
    "arguments that are an object are written",
    () => checkArguments(renderer, JSON.stringify({ word: "epoch", limit: 3 }), "epoch"),
  );
  optional("reasoning of earlier replies", () => checkReasoning(renderer), () => {});
  optional(
    "arguments that are no object are written",
    () => checkArguments(renderer, '{"word": "epo', '{"word": "epo'),
    () => {},
  );
  return checks;
}

function checkPrompt({ text, tokenizer }: CheckedRenderer): Json {
  const prompt = promptText(text, conversation([...opening(text), user("Ünïcode, 漢字 and 😀?\n")]), true);
  const decoded = tokenizer.decode(tokenizer.encode(prompt));
  if (decoded !== prompt) {
    throw new VerbatimError(
      "not_ready",
      `The prompt ${JSON.stringify(prompt)} is ${JSON.stringify(decoded)} once encoded.`,
    );
  }
  return { prompt_characters: prompt.length };
}

/** The template's own text of the longer conversation must end in the increment, and begin with the series where it can. */
function checkAppended(renderer: CheckedRenderer, appended: readonly Message[], said = reply(renderer, 0)): Json {
  const { text, tokenizer } = renderer;
  const answer = takenReply(renderer, said);
  let appendOnly = true;
  const closers = new Set<string>();
  for (const tools of renderer.makesCalls ? [[], [TOOL]] : [[]]) {
    const before = [...opening(text), user("A first question?"), answer];
    const whole = promptText(text, conversation([...before, ...appended], tools), true);
    const request = { appended, tools, settings: {}, calls: answer.toolCalls };
    const open = incrementText(text, request, null);
    mustEqual(tokenizer, open, {
      wanted: whole.slice(Math.max(whole.length - open.length, 0)),
      what: "The increment is not what the whole conversation ends in",
    });
    const closer = text.closerOf(open);
    if (closer === null && renderer.closesTurns) {
      throw new VerbatimError(
        "not_ready",
        `The template closes a plain reply, but not this one: after it comes ${quoted(open.slice(0, 200))}.`,
      );
    }
    closers.add(closer ?? "");
    const closed = incrementText(text, request, closer);
    if (open !== (closer ?? "") + closed) {
      throw new VerbatimError("not_ready", `After ${closer} comes ${quoted(closed)}, without it ${quoted(open)}.`);
    }
    for (const message of appended) mustContain(closed, message);
    const series = whole.slice(0, whole.length - closed.length);
    mustJoin(tokenizer, series, closed);
    const shorter = promptText(text, conversation(before, tools), false);
    // The series ends where the increment begins; what the shorter text has beyond is its closer, once more.
    const length = whole.length - open.length;
    if (whole.startsWith(shorter) && length > shorter.length) {
      mustEqual(tokenizer, shorter + open, { wanted: whole, what: "Series and increment are not the whole" });
    }
    if (!whole.startsWith(shorter.slice(0, length)) || !open.startsWith(shorter.slice(length))) appendOnly = false;
  }
  return { template_is_append_only: appendOnly, closer: [...closers].join(" ") };
}

/** Ids of the parts must be those of the whole, or the model would see a seam that it never saw in training. */
function mustJoin(tokenizer: Tokenizer, series: string, increment: string): void {
  const parts = [...tokenizer.encode(series), ...tokenizer.encode(increment)];
  const difference = tokenDifference(tokenizer, parts, tokenizer.encode(series + increment));
  if (difference === null) return;
  throw new VerbatimError("not_ready", `A series and its increment are other tokens than the whole: ${difference}.`);
}

/** Texts that should be equal, told by their first token that is not. */
function mustEqual(tokenizer: Tokenizer, found: string, { wanted, what }: { wanted: string; what: string }): void {
  if (found === wanted) return;
  const difference = tokenDifference(tokenizer, tokenizer.encode(found), tokenizer.encode(wanted));
  throw new VerbatimError("not_ready", `${what}: ${difference ?? `${quoted(found)} instead of ${quoted(wanted)}`}.`);
}

/** The reply, without its text where the template does not take text and reasoning beside calls. */
function takenReply({ text }: CheckedRenderer, answer: AssistantMessage): AssistantMessage {
  if (answer.toolCalls.length === 0 || answer.reasoning === null) return answer;
  try {
    promptText(text, conversation([user("?"), answer]), false);
    return answer;
  } catch (error) {
    if (error instanceof VerbatimError && error.code === "invalid_request") return { ...answer, content: "" };
    throw error;
  }
}

/** Whether the template writes the reasoning of a reply again: before results, and before a new question. */
function checkReasoning(renderer: CheckedRenderer): Json {
  const { text } = renderer;
  const keeps = (answer: AssistantMessage, next: readonly Message[]) =>
    promptText(text, conversation([user("A first question?"), answer, ...next]), true).includes(REASONING);
  const details: { [name: string]: Json } = {
    kept_before_a_question: keeps(reply(renderer, 0), [user("A second question?")]),
  };
  if (renderer.makesCalls) {
    details["kept_before_results"] = keeps(takenReply(renderer, reply(renderer, 1)), results(renderer, 1));
  }
  return details;
}

function checkCallNames(renderer: CheckedRenderer): Json {
  const request = { appended: results(renderer, 1), tools: [], settings: {} };
  const named = incrementText(renderer.text, { ...request, calls: [call(renderer, 0)] }, null);
  const otherwise = incrementText(
    renderer.text,
    { ...request, calls: [{ ...call(renderer, 0), name: "other" }] },
    null,
  );
  if (named === otherwise) return {};
  throw new VerbatimError("not_ready", "The template writes the function's name with its result.");
}

function checkArguments(renderer: CheckedRenderer, written: string, wanted: string): Json {
  const answer = takenReply(renderer, {
    ...reply(renderer, 1),
    toolCalls: [{ ...call(renderer, 0), arguments: written }],
  });
  const messages = [user("A first question?"), answer, ...results(renderer, 1)];
  const text = promptText(renderer.text, conversation(messages, [TOOL]), true);
  if (!text.includes(wanted)) throw new VerbatimError("not_ready", `The template does not write ${wanted}.`);
  return {};
}

/** A system message, if the template takes one. */
function opening(text: ConversationText): Message[] {
  const system: Message = { role: "system", content: "Be brief.", source: 0 };
  try {
    promptText(text, conversation([system, user("?")]), true);
    return [system];
  } catch {
    return [];
  }
}

function reply(renderer: CheckedRenderer, calls: number): AssistantMessage {
  const toolCalls = Array.from({ length: calls }, (_, index) => call(renderer, index));
  return { role: "assistant", content: "An answer.", reasoning: REASONING, toolCalls, ...NO_FORM };
}

function call(renderer: CheckedRenderer, index: number): AssistantMessage["toolCalls"][number] {
  return { id: renderer.callId(index), name: TOOL.name, arguments: JSON.stringify({ word: `word${index}` }) };
}

function results(renderer: CheckedRenderer, count: number): Message[] {
  return Array.from({ length: count }, (_, index): Message => ({
    role: "tool",
    content: `Result ${index}.`,
    toolCallId: renderer.callId(index),
    source: 0,
  }));
}

function promptText(text: ConversationText, of: Conversation, addGenerationPrompt: boolean): string {
  return plain(text.promptText(of, addGenerationPrompt));
}

function incrementText(text: ConversationText, request: IncrementRequest, lastText: string | null): string {
  return plain(text.incrementText(request, lastText));
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function user(content: string): Message {
  return { role: "user", content, source: 0 };
}

function conversation(messages: readonly Message[], tools: readonly ToolDefinition[] = []): Conversation {
  return { messages, tools, settings: {} };
}

function mustContain(text: string, message: Message): void {
  if (typeof message.content !== "string" || text.includes(message.content)) return;
  throw new VerbatimError("not_ready", `The template leaves out the content of a ${message.role} message.`);
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
