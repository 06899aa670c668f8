/**
 * Added tokens that a template writes to say where things begin and end, though the vocabulary does not mark them special.
 * What a message says must not become one: a tool result with `</tool_response>` or `<｜User｜>` in it stays a result. It
 * knows no family; the template tells.
 */

import { VerbatimError } from "../core/errors.ts";
import type { Message } from "../core/message.ts";
import type { Tokenizer } from "../ports/tokenizer.ts";
import type { ConversationText } from "./conversation_text.ts";
import { plain } from "./jinja/text.ts";

/** Ids of control tokens that are not special. */
export interface ControlTokens {
  /** Those around messages and results: nothing that any message says is one. */
  readonly framing: ReadonlySet<number>;
  /** Those that a reply may say itself (reasoning and call markers): in a reply's own words they count, elsewhere not. */
  readonly written: ReadonlySet<number>;
}

/** Words that are no marker, such as line breaks and runs of spaces that some vocabularies add, are no control tokens. */
const MARKER = /^[^\p{L}\p{N}\s].*[^\p{L}\p{N}\s]$/u;
/** Reasoning is opened in a generation prompt, but it is the reply's own. */
const REASONING = /think/i;

/** Sorts the markers that the template's source names by who writes them. */
export function findControlTokens(
  { source, tokenizer, text, callId }: {
    readonly source: string;
    readonly tokenizer: Tokenizer;
    readonly text: ConversationText;
    /** An id such as the template takes. */
    readonly callId: string;
  },
): ControlTokens {
  const frames = incrementsOf(text, callId);
  const framing = new Set<number>();
  const written = new Set<number>();
  for (const [token, id] of tokenizer.addedTokens) {
    if (tokenizer.specialIds.has(id) || !MARKER.test(token) || !source.includes(token)) continue;
    if (frames.includes(token) && !REASONING.test(token)) framing.add(id);
    else written.add(id);
  }
  return { framing, written };
}

/** What stands around a question and a result, up to the generation prompt. */
function incrementsOf(text: ConversationText, callId: string): string {
  const question: Message = { role: "user", content: "?", source: -1 };
  const result: Message = { role: "tool", content: "?", toolCallId: callId, source: -1 };
  const calls = [{ id: callId, name: "function" }];
  return [[question], [result]].map((appended) => {
    try {
      return plain(text.incrementText({ appended, tools: [], settings: {}, calls }, null));
    } catch (error) {
      // A role that can't be appended frames nothing.
      if (error instanceof VerbatimError) return "";
      throw error;
    }
  }).join("");
}
