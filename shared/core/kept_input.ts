/**
 * The conversations of requests, kept so that a later request can go on from one by the id of its answer. A task's turns
 * hold each message once, however often a client sends it again. It knows no dialect.
 */

import type { Message } from "./message.ts";
import { sharedMessages } from "./same_message.ts";
import type { Turn } from "./turn.ts";

/** The conversation of one request: messages of an earlier one, then its own. */
export interface KeptInput {
  /** The turn whose conversation it begins with, and how many of its messages; null: with none. */
  readonly shared: { readonly turn: number; readonly messages: number } | null;
  /** The messages after those. */
  readonly messages: readonly Message[];
}

/** What has to be kept of a conversation, `turns` being those before it and `parent` the one it most likely repeats. */
export function keepInput(messages: readonly Message[], turns: readonly Turn[], parent: number | null): KeptInput {
  const known = parent === null ? null : keptMessages(turns, parent);
  const count = known === null ? 0 : sharedMessages(messages, known);
  if (parent === null || count === 0) return { shared: null, messages };
  return { shared: { turn: parent, messages: count }, messages: messages.slice(count) };
}

/** The conversation that a turn was asked with, or null where it was not kept. */
export function keptMessages(turns: readonly Turn[], turn: number): Message[] | null {
  const pieces: (readonly Message[])[] = [];
  let end = Infinity;
  for (let at: number | null = turn; at !== null;) {
    const input: KeptInput | undefined = turns[at]?.detail.input;
    if (input === undefined) return null;
    const before = input.shared?.messages ?? 0;
    if (end > before) pieces.push(input.messages.slice(0, end - before));
    end = Math.min(end, before);
    at = input.shared?.turn ?? null;
  }
  return pieces.reverse().flat();
}
