/**
 * A scaffold at random: it appends, retries, edits, compacts, rolls back and makes side calls, and writes the same thing
 * in ever other ways. Beside it the plain, slow way to locate a request, over what was meant and not how it was written.
 */

import fc from "fast-check";
import type { AssistantMessage, Content, Conversation, Message, ToolCall } from "../../shared/core/message.ts";

/** A call as meant: its arguments are one number. */
export interface MeantCall {
  readonly id: string;
  readonly name: string;
  readonly value: number;
}

/** A piece of an assistant turn. */
export interface MeantPiece {
  readonly text: string;
  readonly calls: readonly MeantCall[];
}

/** A unit as meant. A tool result is known by the place of its call. */
export type MeantUnit =
  | { readonly kind: "system" | "user"; readonly text: string }
  | { readonly kind: "tool"; readonly place: number; readonly id: string; readonly text: string }
  | { readonly kind: "assistant"; readonly pieces: readonly MeantPiece[] };

/** A request as meant, and the reply it will get; null where it fails. */
export interface MeantRequest {
  readonly units: readonly MeantUnit[];
  readonly tools: string;
  readonly reply: MeantPiece | null;
}

/** What the scaffold does next, in numbers that are read as choices. */
export interface Move {
  readonly kind:
    | "append"
    | "retry"
    | "edit"
    | "compact"
    | "rollback"
    | "side"
    | "tools"
    | "retools"
    | "prefill"
    | "cut";
  readonly from: number;
  readonly at: number;
  readonly echo: "same" | "args" | "text" | "calls" | "ids" | "changed" | "missing" | "joined";
  readonly fails: boolean;
  readonly text: number;
}

/** Moves; most of them append. */
export const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.record({
    kind: fc.constantFrom<Move["kind"][]>(
      ...["append", "append", "append", "append", "append", "append"] as const,
      ...["retry", "edit", "compact", "rollback", "side", "tools", "retools", "prefill", "cut"] as const,
    ),
    from: fc.oneof(fc.constant(0), fc.nat(6)),
    at: fc.nat(20),
    echo: fc.constantFrom<Move["echo"][]>(
      ...["same", "same", "same", "args", "text", "calls", "ids", "changed", "missing", "joined"] as const,
    ),
    fails: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    text: fc.nat(2),
  }),
  { minLength: 1, maxLength: 14 },
);

const START: readonly MeantUnit[] = [{ kind: "system", text: "be good" }, { kind: "user", text: "do it" }];

/** The requests that moves come to. */
export function requestsOf(made: readonly Move[]): MeantRequest[] {
  const requests: MeantRequest[] = [];
  made.forEach((move, k) => void requests.push(requestOf(requests, move, k)));
  return requests;
}

/** The next request after these. `from` counts back from the latest; `k` makes what is new in it unlike all else. */
export function requestOf(earlier: readonly MeantRequest[], move: Move, k: number): MeantRequest {
  const base = earlier[baseOf(earlier.length, move)];
  const reply = move.fails ? null : replyOf(k, move);
  return base === undefined ? { units: START, tools: "a", reply } : { ...next(base, move, k), reply };
}

/** Index of the request that a move goes on from, after so many; 0 for the first move. */
export function baseOf(earlier: number, move: Move): number {
  return Math.max(0, earlier - 1 - move.from);
}

/** Replies are alike now and then, so that ties come up. */
function replyOf(k: number, move: Move): MeantPiece {
  const calls = Array.from({ length: move.text }, (_, n) => ({ id: `c${k}.${n}`, name: `f${n}`, value: move.text }));
  return { text: move.text === 1 ? "" : `reply ${move.text}`, calls };
}

function next(base: MeantRequest, move: Move, k: number): Omit<MeantRequest, "reply"> {
  const { units, tools } = base;
  switch (move.kind) {
    case "append":
      return { units: appended(base, move), tools };
    case "retry":
      return { units, tools };
    case "edit": {
      const at = move.at % units.length;
      const unit = units[at]!;
      const edited: MeantUnit = unit.kind === "assistant"
        ? { kind: "assistant", pieces: [{ text: `edited ${move.text}`, calls: [] }] }
        : { ...unit, text: `edited ${move.text}` };
      return { units: [...units.slice(0, at), edited, ...units.slice(at + 1)], tools };
    }
    case "compact":
      return { units: [...units.slice(0, 1), { kind: "user", text: `summary ${k}` }], tools };
    case "rollback":
      return { units: units.slice(0, 1 + move.at % units.length), tools };
    case "side":
      return { units: [{ kind: "system", text: `side ${move.text}` }, ...units.slice(1)], tools: "none" };
    case "tools":
      return { units: appended(base, move), tools: tools === "a" ? "b" : "a" };
    case "retools":
      return { units, tools: tools === "a" ? "b" : "a" };
    case "cut":
      return { units: answered(base, move.echo).units, tools };
    case "prefill":
      return {
        units: [...appended(base, move), { kind: "assistant", pieces: [{ text: `start ${move.text}`, calls: [] }] }],
        tools,
      };
  }
}

/** The base's prompt, its reply as echoed, the results of its calls or a user's word. */
function appended(base: MeantRequest, move: Move): MeantUnit[] {
  const { units, skip, calls } = answered(base, move.echo);
  const results = calls.map((call, k): MeantUnit => (
    { kind: "tool", place: skip + k, id: call.id, text: `result ${move.text}` }
  ));
  const word = results.length === 0 || move.text === 2 ? [{ kind: "user", text: `word ${move.text}` } as const] : [];
  return [...units, ...results, ...word];
}

/** The base's prompt and its reply as echoed; the reply continues an assistant turn that the prompt ends in. `skip` calls came before it. */
function answered(
  base: MeantRequest,
  how: Move["echo"],
): { readonly units: readonly MeantUnit[]; readonly skip: number; readonly calls: readonly MeantCall[] } {
  if (base.reply === null || how === "missing") return { units: base.units, skip: 0, calls: [] };
  const echo = echoOf(base.reply, how);
  const last = base.units.at(-1);
  const open = last?.kind === "assistant" ? last.pieces : [];
  const pieces = how === "joined" ? [joined([...open, echo])] : [...open, echo];
  const before = open.length === 0 ? base.units : base.units.slice(0, -1);
  const skip = open.reduce((sum, piece) => sum + piece.calls.length, 0);
  return { units: [...before, { kind: "assistant", pieces }], skip, calls: echo.calls };
}

function joined(pieces: readonly MeantPiece[]): MeantPiece {
  return { text: pieces.map((piece) => piece.text).join(""), calls: pieces.flatMap((piece) => piece.calls) };
}

function echoOf(reply: MeantPiece, echo: Move["echo"]): MeantPiece {
  const { text, calls } = reply;
  switch (echo) {
    case "args":
      return { text, calls: calls.map((call, k) => k === 0 ? { ...call, value: call.value + 100 } : call) };
    case "text":
      return { text: "", calls };
    case "calls":
      return { text, calls: calls.slice(1) };
    case "ids":
      return { text, calls: calls.map((call) => ({ ...call, id: `minted ${call.id}` })) };
    case "changed":
      return { text: `${text} more`, calls };
    default:
      return reply;
  }
}

/** Writes a request, in one of many ways that mean the same. `style` chooses; 0 is the plainest. */
export function write(request: MeantRequest, style: number): Conversation {
  const random = randomOf(style);
  const messages: Message[] = [];
  let source = 0;
  const take = () => {
    const own = source;
    source += 1 + random(2);
    return own;
  };
  for (let at = 0; at < request.units.length;) {
    const unit = request.units[at]!;
    if (unit.kind === "assistant") {
      // White space is trimmed around a turn, not between its pieces: only a turn that nothing can be added to is padded.
      const pad = unit.pieces.length === 1 && at < request.units.length - 1;
      messages.push(...unit.pieces.map((piece) => assistant(piece, take(), { random, pad })));
    } else if (unit.kind !== "tool") {
      messages.push({ role: unit.kind, content: content(unit.text, random), source: take() });
    } else {
      const block: MeantUnit[] = [];
      for (let k = at; request.units[k]?.kind === "tool"; k++) block.push(request.units[k]!);
      if (random(2) === 1) block.reverse();
      for (const result of block) {
        if (result.kind !== "tool") continue;
        messages.push({ role: "tool", toolCallId: result.id, content: content(result.text, random), source: take() });
      }
      at += block.length;
      continue;
    }
    at++;
  }
  return {
    messages,
    tools: request.tools === "none" ? [] : [{ name: request.tools, raw: { name: request.tools } }],
    settings: {},
  };
}

/** A reply or echo as an assistant message. */
export function assistant(
  piece: MeantPiece,
  source: number,
  options: { readonly random: (below: number) => number; readonly pad: boolean },
): AssistantMessage {
  const { random, pad } = options;
  const toolCalls = piece.calls.map((call): ToolCall => ({
    id: call.id,
    name: call.name,
    arguments: argumentsText(call.value, random),
  }));
  const padding = pad ? ["", "\n", "  "][random(3)]! : "";
  const text = piece.text === "" ? padding.repeat(random(2)) : `${padding}${piece.text}${padding}`;
  const reasoning = random(2) === 0 ? null : `thought ${random(9)}`;
  return {
    role: "assistant",
    content: text,
    reasoning,
    toolCalls,
    form: `${JSON.stringify([text, toolCalls.map((call) => call.arguments)])}`,
    source,
  };
}

function argumentsText(value: number, random: (below: number) => number): string {
  return [
    JSON.stringify({ value, also: "é" }),
    `{"also": "\\u00e9",  "value": ${value}.0}`,
    `{"value":0,"also":"é","value":${value}e0}`,
  ][random(3)]!;
}

function content(text: string, random: (below: number) => number): Content {
  const half = random(text.length + 1);
  return [
    text,
    [{ type: "text", text } as const],
    [{ type: "text", text: text.slice(0, half) } as const, { type: "text", text: text.slice(half) } as const],
  ][random(3)]!;
}

/** A small generator of numbers; style 0 gives zeros. */
export function randomOf(style: number): (below: number) => number {
  let state = style >>> 0;
  return (below) => {
    if (style === 0) return 0;
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
}
