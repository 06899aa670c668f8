/** Where a request differs from what was expected, in words a person can look up in the request. */

import type { EchoGrade } from "./echo_grade.ts";
import type { Unit } from "./message_signature.ts";
import { shorten } from "./shorten.ts";
import type { StoredUnit, TurnHistory } from "./turn_history.ts";
import { digest } from "./digest.ts";

/** A place in a request where it differs from what is stored. */
export interface Difference {
  /** Index of the unit. */
  readonly unit: number;
  /** Index of its first entry in the request's `messages` or `input`, -1 for text outside the list; where the request ends too early, the number of entries. */
  readonly message: number;
  /** `role`, `content`, `tool_calls`, `tool_calls.id`, `tool_call_id`, or `end`. */
  readonly field: string;
  /** What was expected, shortened. */
  readonly stored: string | null;
  /** What stands there, shortened. */
  readonly received: string | null;
}

/** A unit of a request, or of one that is stored. */
export type Comparable = Unit | StoredUnit;

/** Where a unit differs from the one expected; `received` is null where the request ends before it, after so many `entries`. */
export function differenceOfUnits(
  expected: StoredUnit | null,
  at: { readonly unit: number; readonly received: Comparable | null; readonly entries: number },
): Difference | null {
  if (expected === null) return null;
  const { unit, received } = at;
  if (received === null) {
    return { unit, message: at.entries, field: "end", stored: `${expected.kind}: ${shown(expected)}`, received: null };
  }
  const place = { unit, message: received.message };
  if (expected.kind !== received.kind) {
    return { ...place, field: "role", stored: expected.kind, received: received.kind };
  }
  if (received.kind === "assistant" && expected.assistant?.text === textHashOf(received)) {
    return { ...place, field: "tool_calls", stored: expected.assistant?.calls ?? "", received: callsOf(received) };
  }
  const values = { stored: shown(expected), received: shown(received) };
  return {
    ...place,
    field: received.kind === "tool" && values.stored === values.received ? "tool_call_id" : "content",
    ...values,
  };
}

/** Where an echo differs from the reply; null where it says the same under the same ids. */
export function differenceOfEcho(
  history: TurnHistory,
  echo: EchoGrade | null,
  at: { readonly unit: number; readonly received: Comparable },
): Difference | null {
  const { reply } = history;
  const { received } = at;
  const place = { unit: at.unit, message: received.message };
  switch (echo) {
    case null:
    case "exact":
    case "representation":
      return null;
    case "missing":
      return { ...place, field: "role", stored: "assistant", received: received.kind };
    case "ids_rewritten":
      return { ...place, field: "tool_calls.id", stored: reply.callsPreview, received: callsOf(received) };
    case "args_rewritten":
    case "calls_dropped":
      return { ...place, field: "tool_calls", stored: reply.callsPreview, received: callsOf(received) };
    case "text_dropped":
    case "text_changed":
      return { ...place, field: "content", stored: reply.preview, received: shown(received) };
  }
}

/** A unit as kept. */
export function storedUnit(unit: Unit): StoredUnit {
  const { kind, hash, message } = unit;
  const stored = { kind, hash, message, preview: shorten(unit.text) };
  if (unit.kind !== "assistant") return stored;
  return { ...stored, assistant: { text: textHashOf(unit), calls: callsOf(unit) } };
}

/** Calls as shown: `name(arguments) #id`, shortened. */
export function showCalls(
  calls: readonly { readonly name: string; readonly id: string; readonly arguments: string }[],
): string {
  return shorten(calls.map((call) => `${call.name}(${call.arguments}) #${call.id}`).join(", "));
}

function shown(unit: Comparable): string {
  return "text" in unit ? shorten(unit.text) : unit.preview;
}

function callsOf(unit: Comparable): string {
  if (unit.kind !== "assistant") return "";
  if ("messages" in unit) return showCalls(unit.messages.flatMap((message) => message.toolCalls));
  return "assistant" in unit ? unit.assistant?.calls ?? "" : "";
}

function textHashOf(unit: Comparable): string {
  if ("text" in unit) return digest(unit.text);
  return unit.assistant?.text ?? "";
}
