/**
 * The text that belongs after a series: the rest of the closer, the appended messages, the generation prompt. It comes from
 * the template itself: a short made-up conversation that ends in an assistant message is rendered with the appended
 * messages behind it, and what follows the made-up reply is the increment. It knows nothing of tokens.
 */

import { VerbatimError } from "../core/errors.ts";
import type { AssistantMessage, Message, TemplateSettings, ToolCall, ToolDefinition } from "../core/message.ts";
import { plain, slice, type Text } from "./jinja/text.ts";
import type { PromptTemplate } from "./prompt_template.ts";

export interface IncrementRequest {
  readonly appended: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  readonly settings: TemplateSettings;
  /** The calls that appended tool results may answer, where they are known. */
  readonly calls: readonly Pick<ToolCall, "id" | "name">[];
}

export interface IncrementOptions {
  /** Texts of the tokens that end a turn. */
  readonly stopTexts: readonly string[];
}

/** Letters only: nothing a template strips, splits at or escapes. */
const SENTINEL = "VerbatimSampledTextEndsHere";
const MAX_ATTEMPTS = 8;
const NO_SOURCE = { source: -1, form: "" } as const;

export class Increment {
  readonly #prompt: PromptTemplate;
  readonly #stopTexts: readonly string[];
  /** What follows the last argument of the last call, up to the closer, by settings. */
  readonly #callEnds = new Map<string, string | null>();

  constructor(prompt: PromptTemplate, options: IncrementOptions) {
    this.#prompt = prompt;
    this.#stopTexts = options.stopTexts;
  }

  /** The whole increment: closer, appended messages, generation prompt. What the series already closes is not cut here. */
  render(request: IncrementRequest): Text {
    if (request.appended[0]?.role === "tool") {
      const end = this.#callEnd(request);
      if (end !== null) {
        const tail = this.#tail(request, (sentinel) => callingReply(request, sentinel));
        if (tail !== null && plain(tail).startsWith(end)) return slice(tail, end.length);
        // Some formats write the call's id after its arguments: what ends a call is then another for every id.
        const own = this.#newCallEnd(request);
        if (tail !== null && own !== null && plain(tail).startsWith(own)) return slice(tail, own.length);
        throw new VerbatimError(
          "unsupported",
          "The chat template writes a tool call differently once results follow it, so results can't be appended.",
        );
      }
    }
    const tail = this.#tail(request, plainReply);
    if (tail !== null) return tail;
    throw new VerbatimError(
      "unsupported",
      "The chat template does not write an assistant message's content as it is, so nothing can be appended to one.",
    );
  }

  /** What the template writes after an assistant message that nothing follows. */
  closer(request: Pick<IncrementRequest, "tools" | "settings">): string {
    const tail = this.#tail({ ...request, appended: [], calls: [] }, plainReply, false);
    if (tail !== null) return plain(tail);
    throw new VerbatimError("unsupported", "The chat template does not write an assistant message's content as it is.");
  }

  /** Null: the template writes no calls, so that a reply without calls does as well. */
  #callEnd(request: IncrementRequest): string | null {
    const key = JSON.stringify(request.settings);
    const known = this.#callEnds.get(key);
    if (known !== undefined) return known;
    const end = this.#newCallEnd(request);
    if (this.#callEnds.size >= 64) this.#callEnds.clear();
    this.#callEnds.set(key, end);
    return end;
  }

  #newCallEnd(request: IncrementRequest): string | null {
    const alone = { ...request, appended: [] };
    const tail = this.#tail(alone, (sentinel) => callingReply(request, sentinel), false);
    return tail === null ? null : this.#withoutCloser(plain(tail), this.closer(request));
  }

  #withoutCloser(tail: string, closer: string): string {
    if (closer !== "" && tail.endsWith(closer)) return tail.slice(0, tail.length - closer.length);
    // Some formats close a call otherwise than an answer: the last token that ends a turn begins the closer.
    const start = Math.max(...this.#stopTexts.map((text) => tail.lastIndexOf(text)));
    return start < 0 ? tail : tail.slice(0, start);
  }

  /** What follows the sentinel; null where the template does not write it. */
  #tail(
    request: IncrementRequest,
    reply: (sentinel: string) => AssistantMessage,
    addGenerationPrompt = true,
  ): Text | null {
    let sentinel = SENTINEL;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++, sentinel += attempt) {
      const text = this.#prompt.render({
        messages: [{ role: "user", content: "Go on.", source: -1 }, reply(sentinel), ...request.appended],
        tools: request.tools,
        settings: request.settings,
        addGenerationPrompt,
        earlierCalls: request.calls,
      });
      const start = plain(text).indexOf(sentinel);
      if (start < 0) return null;
      // Once only, or a message quotes it.
      if (plain(text).indexOf(sentinel, start + 1) < 0) return slice(text, start + sentinel.length);
    }
    throw new VerbatimError("invalid_request", `A message quotes ${SENTINEL} in every form that is tried.`);
  }
}

function plainReply(sentinel: string): AssistantMessage {
  return { role: "assistant", content: sentinel, reasoning: null, toolCalls: [], ...NO_SOURCE };
}

/** A reply that made the calls which the leading tool results answer; the sentinel is the last argument of the last. */
function callingReply(request: IncrementRequest, sentinel: string): AssistantMessage {
  const ids = new Set<string>();
  for (const message of request.appended) {
    if (message.role !== "tool") break;
    ids.add(message.toolCallId);
  }
  if (ids.size === 0) ids.add("call_0");
  const names = new Map(request.calls.map((call) => [call.id, call.name]));
  const toolCalls = [...ids].map((id, index) => ({
    id,
    name: names.get(id) ?? nameOf(id),
    arguments: JSON.stringify({ value: index === ids.size - 1 ? sentinel : "" }),
  }));
  return { role: "assistant", content: "", reasoning: null, toolCalls, ...NO_SOURCE };
}

/** Kimi's ids carry the function's name. */
function nameOf(id: string): string {
  return /^functions\.(.+):\d+$/s.exec(id)?.[1] ?? "function";
}
