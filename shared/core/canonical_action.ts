/** What an assistant decided to do, in no model's syntax. It does not know templates, tokens or tool schemas. */

import { canonicalJson } from "./canonical_json.ts";
import type { Json } from "./message.ts";

/** What a decision was reasoned with and said beside. */
export interface Beside {
  /** Reasoning before it. */
  readonly reasoning?: string;
  /** Text beside a call. */
  readonly text?: string;
}

/** One decision. `finish` is a call that ends the task, of whichever name the scaffold gave it. */
export type CanonicalAction =
  | (
    & { readonly kind: "tool_call" | "finish"; readonly name: string; readonly arguments: { [key: string]: Json } }
    & Beside
  )
  | ({ readonly kind: "message"; readonly text: string } & Pick<Beside, "reasoning">);

/** A message as it was parsed. */
export interface ParsedMessage {
  /** Reasoning, or null. */
  readonly reasoning: string | null;
  /** Text outside reasoning and calls, or null. */
  readonly content: string | null;
  /** Calls with their arguments as JSON text. */
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
}

/** The action, and how many further calls of the message it leaves out; or why there is none. */
export type ReadAction =
  | { readonly action: CanonicalAction; readonly droppedCalls: number }
  | { readonly action: null; readonly reason: string };

/** Names under which scaffolds offer the call that ends a task. */
const FINISH_NAMES: ReadonlySet<string> = new Set([
  "finish",
  "submit",
  "complete",
  "task_complete",
  "mark_task_complete",
  "attempt_completion",
]);

/** The action in a message: its first call, else its text. Arguments that are no object, and a message of nothing, are none. */
export function readAction(message: ParsedMessage): ReadAction {
  const [call, ...more] = message.toolCalls;
  const text = message.content?.trim() ?? "";
  const beside = {
    ...(message.reasoning === null || message.reasoning.trim() === "" ? {} : { reasoning: message.reasoning.trim() }),
    ...(text === "" ? {} : { text }),
  };
  if (call === undefined) {
    if (text === "") return { action: null, reason: "empty" };
    return { action: { kind: "message", ...beside, text }, droppedCalls: 0 };
  }
  const given = parseObject(call.arguments);
  if (given === null) return { action: null, reason: "malformed" };
  const kind = FINISH_NAMES.has(call.name) ? "finish" : "tool_call";
  return { action: { kind, name: call.name, arguments: given, ...beside }, droppedCalls: more.length };
}

/** Whether two actions are the same decision, said with the same words. */
export function isSameAction(left: CanonicalAction, right: CanonicalAction): boolean {
  const text = canonicalJson({ ...left });
  return text !== null && text === canonicalJson({ ...right });
}

function parseObject(text: string): { [key: string]: Json } | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** What JSON.parse makes is JSON. */
function isObject(value: unknown): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
