/** How a served reply came back. It compares one reply with one assistant unit; which belong together is known elsewhere. */

import { digest } from "./digest.ts";
import type { AssistantUnit, SignedCall } from "./message_signature.ts";
import type { OpenTurn, StoredCall, StoredReply } from "./turn_history.ts";

/** What can be found of an echo. */
export type Echo =
  | "exact"
  | "representation"
  | "ids_rewritten"
  | "args_rewritten"
  | "text_dropped"
  | "calls_dropped"
  | "text_changed";

/** The grade of an echo; `missing` where no assistant turn stands in the reply's place. */
export type EchoGrade = Echo | "missing";

/** What became of a reply's reasoning. Not part of the grade. */
export type ReasoningFate = "kept" | "trimmed" | "dropped" | "changed" | "nested" | "referenced";

/** A graded echo. */
export interface GradedEcho {
  /** The first of calls, arguments, text, ids that changed; else how alike it is written. */
  readonly echo: Echo;
  /** What else changed, in that order. */
  readonly also: readonly Echo[];
}

/** Whether an echo says the same as the reply: under `strict`, only then it is an echo. */
export function isSameTurn(echo: EchoGrade): boolean {
  return echo === "exact" || echo === "representation" || echo === "ids_rewritten";
}

/** Whether what stands in a reply's place is taken for its echo. */
export function isAccepted(echo: EchoGrade, policy: "lenient" | "strict"): boolean {
  return policy === "lenient" ? echo !== "missing" : isSameTurn(echo);
}

/** Grades the unit in a reply's place. `open` is the assistant turn that the reply continues, if it does. */
export function gradeEcho(reply: StoredReply, unit: AssistantUnit, open: OpenTurn | null): GradedEcho {
  const calls = unit.calls.slice(open?.callCount ?? 0);
  const found: Echo[] = [];
  const aligned = alignCalls(reply.calls, calls);
  if (calls.length < reply.calls.length) found.push("calls_dropped");
  if (!aligned.asServed) found.push("args_rewritten");
  const text = digest(unit.text);
  if (text !== reply.text) {
    const gone = reply.hasText && (open === null ? unit.text === "" : text === open.text);
    found.push(gone ? "text_dropped" : "text_changed");
  }
  if (!aligned.idsKept) found.push("ids_rewritten");
  const [first, ...also] = found;
  if (first !== undefined) return { echo: first, also };
  return { echo: sameForms(reply, unit, open) ? "exact" : "representation", also: [] };
}

/** What became of a reply's reasoning in the unit in its place. */
export function reasoningFate(reply: StoredReply, unit: AssistantUnit, open: OpenTurn | null): ReasoningFate | null {
  if (reply.reasoning === null) return null;
  const messages = unit.messages.slice(open?.messageCount ?? 0);
  const written = messages.flatMap((message) =>
    message.reasoning === null || message.reasoning === "" ? [] : [message.reasoning]
  );
  const place = messages.find((message) => message.reasoningPlace !== undefined)?.reasoningPlace;
  if (place !== undefined) return place;
  if (written.length === 0) return "dropped";
  const reasoning = written.join("");
  if (digest(reasoning) === reply.reasoning.exact) return "kept";
  return digest(reasoning.trim()) === reply.reasoning.trimmed ? "trimmed" : "changed";
}

/** Worse is larger: for choosing among several samples of one prompt the one whose reply came back. */
export function badness(graded: GradedEcho): number {
  if (graded.echo === "exact") return 0;
  if (graded.echo === "representation") return 1;
  if (isSameTurn(graded.echo)) return 2;
  return 2 + [graded.echo, ...graded.also].reduce((sum, echo) => sum + BADNESS[echo], 0);
}

const BADNESS: { readonly [echo in Echo]: number } = {
  exact: 0,
  representation: 0,
  ids_rewritten: 1,
  text_dropped: 10,
  calls_dropped: 10,
  args_rewritten: 11,
  text_changed: 11,
};

function sameForms(reply: StoredReply, unit: AssistantUnit, open: OpenTurn | null): boolean {
  const skip = open?.formCount ?? 0;
  return unit.forms.length - skip === reply.forms.length &&
    reply.forms.every((form, k) => form === unit.forms[skip + k]);
}

/** Whether the calls are some of the served ones, in order, and whether they kept their ids. */
function alignCalls(
  served: readonly StoredCall[],
  written: readonly SignedCall[],
): { readonly asServed: boolean; readonly idsKept: boolean } {
  const same = (a: StoredCall, b: StoredCall) => a.hash === b.hash;
  const identical = (a: StoredCall, b: StoredCall) => a.hash === b.hash && a.id === b.id;
  if (isSubsequence(written, served, identical)) return { asServed: true, idsKept: true };
  if (isSubsequence(written, served, same)) return { asServed: true, idsKept: false };
  const [fewer, more] = written.length < served.length ? [written, served] : [served, written];
  return { asServed: false, idsKept: isSubsequence(fewer, more, (a, b) => a.id === b.id) };
}

function isSubsequence(
  some: readonly StoredCall[],
  all: readonly StoredCall[],
  equal: (a: StoredCall, b: StoredCall) => boolean,
): boolean {
  let next = 0;
  for (const candidate of all) if (next < some.length && equal(candidate, some[next]!)) next++;
  return next === some.length;
}
