/**
 * A random scaffold played through the recorder, and beside it what a plain reference expects of each request: a turn of
 * its own or a stored answer again, and which turn's series it extends.
 */

import assert from "node:assert/strict";
import type { Conversation, ToolDefinition } from "../../shared/core/message.ts";
import { VerbatimError } from "../../shared/core/errors.ts";
import { repeatDigest } from "../../shared/core/repeat_digest.ts";
import { requestUnits } from "../../shared/core/request_units.ts";
import type { TaskRecord } from "../../shared/core/task.ts";
import type { RecorderWorld } from "../fixtures/recorder_world.ts";
import { type Earlier, plainLocate } from "./plain_locate.ts";
import { baseOf, type MeantPiece, type MeantRequest, type Move, randomOf, requestOf, write } from "./scaffold_model.ts";

/** How one request is sent. */
export interface Manner {
  /** How it is written; 0 is the plainest. */
  readonly style: number;
  readonly isRetry: boolean;
  readonly delivered: boolean;
  readonly isCut: boolean;
  /** Whether it is sent while earlier ones that it does not go on from are still under way. */
  readonly isParallel: boolean;
}

/** A request that was played. */
export interface PlayedRequest {
  readonly request: MeantRequest;
  /** The turn that answered it; null where it failed. */
  readonly turn: number | null;
  readonly isReplay: boolean;
}

/** What distinguishes one scaffold of a task from another. */
export interface ScaffoldOptions {
  readonly task: TaskRecord;
  /** Its system text begins with this, so that it shares no unit with others. */
  readonly name: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly moves: readonly Move[];
  readonly manners: readonly Manner[];
  /** Waited for before the kth request is sent. */
  readonly turnOf?: (k: number) => Promise<void>;
}

/** Everything a scaffold of one task knows while it plays. */
interface State {
  readonly world: RecorderWorld;
  readonly options: ScaffoldOptions;
  readonly requests: MeantRequest[];
  readonly played: PlayedRequest[];
  /** Ids as served, by the ids meant. */
  readonly ids: Map<string, string>;
  /** The latest turn of each request digest. */
  readonly answers: Map<string, number>;
  /** The request that made a turn. */
  readonly makers: Map<number, number>;
  /** Whether a turn's answer went out whole. */
  readonly delivered: Map<number, boolean>;
}

/** Plays moves one after the other and holds every outcome against the reference. */
export async function playScaffold(world: RecorderWorld, options: ScaffoldOptions): Promise<PlayedRequest[]> {
  const state = stateOf(world, options);
  for (let k = 0; k < options.moves.length; k++) {
    await options.turnOf?.(k);
    await play(state, k, { checked: true });
  }
  return state.played;
}

/** Plays moves, those that may at once. What each comes to depends on chance; the record must hold whatever it is. */
export async function playAtOnce(world: RecorderWorld, options: ScaffoldOptions): Promise<PlayedRequest[]> {
  const state = stateOf(world, options);
  const ended: Promise<void>[] = [];
  for (let k = 0; k < options.moves.length; k++) {
    const manner = mannerOf(options, k);
    const base = baseOf(k, options.moves[k]!);
    // A move is read against what it goes on from, which must be known to its end.
    if (manner.isParallel && base < k) await Promise.all(ended.slice(0, base + 1));
    else await Promise.all(ended);
    ended.push(play(state, k, { checked: false }));
  }
  await Promise.all(ended);
  return state.played;
}

function stateOf(world: RecorderWorld, options: ScaffoldOptions): State {
  return {
    world,
    options,
    requests: [],
    played: [],
    ids: new Map(),
    answers: new Map(),
    makers: new Map(),
    delivered: new Map(),
  };
}

function mannerOf(options: ScaffoldOptions, k: number): Manner {
  return options.manners[k % options.manners.length]!;
}

async function play(state: State, k: number, { checked }: { readonly checked: boolean }): Promise<void> {
  const { world, options, requests } = state;
  const manner = mannerOf(options, k);
  const meant = requestOf(requests, options.moves[k]!, k);
  requests[k] = meant;
  const conversation = conversationOf(state, meant, manner.style);
  const expected = checked ? expectedOf(state, conversation, manner) : null;
  const turnsBefore = checked ? (await world.services.tasks.get(options.task.taskId)).task.turns : 0;
  const reply = meant.reply;
  const asked = world.ask(options.task.taskId, {
    conversation,
    says: reply === null ? null : markupOf(reply, k),
    isCut: manner.isCut,
    isRetry: manner.isRetry,
    delivered: manner.delivered,
    weightVersion: String(k >> 2),
    ...(options.headers === undefined ? {} : { headers: options.headers }),
    gate: () => turnsOfTheLoop(manner.style % 5),
  });
  const answer = await asked.catch((error) => {
    // A retry may have joined a call that fails.
    const mayFail = reply === null || !checked;
    if (error instanceof VerbatimError && error.code === "engine_failed" && mayFail) return null;
    throw error;
  });
  if (checked) await world.services.background.idle();
  if (answer === null || answer.turn === null) {
    requests[k] = { ...meant, reply: null };
    state.played[k] = { request: requests[k]!, turn: null, isReplay: false };
    if (expected !== null) assert.equal(expected.replays, null, "an answer that is there is given again");
    return;
  }
  const maker = state.makers.get(answer.turn);
  const isReplay = maker !== undefined;
  if (expected !== null) {
    assert.equal(isReplay ? answer.turn : null, expected.replays, "a repeat is answered as the reference says");
    if (!isReplay) assert.equal(answer.turn, turnsBefore, "a new turn takes the next number");
  }
  if (isReplay) {
    // The scaffold was given the earlier reply, and goes on from that.
    requests[k] = { ...meant, reply: requests[maker]!.reply };
    if (manner.delivered) state.delivered.set(answer.turn, true);
  } else {
    meant.reply?.calls.forEach((call, n) => state.ids.set(call.id, answer.reply.toolCalls[n]!.id));
    assert.equal(answer.reply.toolCalls.length, meant.reply?.calls.length, "every call is read");
    assert.equal(answer.reply.content.trim(), meant.reply?.text, "the text is read");
    const digest = digestOf(conversation);
    state.answers.set(digest, Math.max(answer.turn, state.answers.get(digest) ?? 0));
    state.makers.set(answer.turn, k);
    state.delivered.set(answer.turn, manner.delivered);
  }
  state.played[k] = { request: requests[k]!, turn: answer.turn, isReplay };
  if (expected !== null && !isReplay) await checkParent(state, answer.turn, expected.parents);
}

/** What the reference says of a request before it is sent. */
interface Expected {
  /** The turn whose answer is given again, or null. */
  readonly replays: number | null;
  /** The turns of which one is extended; null where the prompt is rendered whole. */
  readonly parents: readonly number[] | null;
}

function expectedOf(state: State, conversation: Conversation, manner: Manner): Expected {
  const { options, played, requests } = state;
  const known = state.answers.get(digestOf(conversation));
  const again = known !== undefined && (manner.isRetry || state.delivered.get(known) !== true);
  const earlier: Earlier[] = played.flatMap(({ request, turn, isReplay }) => isReplay ? [] : [{ request, turn }]);
  const place = plainLocate(earlier, requests.at(-1)!, options.task.settings.echo);
  return { replays: again ? known : null, parents: place.extend?.turns ?? null };
}

async function checkParent(state: State, turn: number, parents: readonly number[] | null): Promise<void> {
  const { world, options } = state;
  const { task } = await world.services.tasks.get(options.task.taskId);
  const turns = await world.services.store.readTurns(task, 0, turn + 1);
  const { parent, rewriteOf } = turns[turn]!.record;
  const from = parent ?? rewriteOf ?? null;
  if (parents === null) assert.equal(from, null);
  else assert.ok(from !== null && parents.includes(from), `turn ${turn} goes on from ${from}, not one of ${parents}`);
  if (from === null) return;
  const path: number[] = [];
  for (let at: number | null = from; at !== null; at = turns[at]!.record.parent) path.push(at);
  const drops = options.task.settings.reasoningHistory === "template" &&
    path.some((earlier) => isThoughtDropped(state, turn, earlier));
  assert.equal(
    parent === null,
    drops,
    `turn ${turn} begins a row exactly where the template drops reasoning before it`,
  );
}

/** Qwen3's template drops what was thought before the latest word of the user, and everything where there is none. */
function isThoughtDropped({ makers, requests }: State, turn: number, earlier: number): boolean {
  const maker = makers.get(earlier)!;
  if (!thinks(maker)) return false;
  const { units } = requests[makers.get(turn)!]!;
  const latest = units.findLastIndex((unit) => unit.kind === "user");
  return latest < 0 || latest >= requests[maker]!.units.length;
}

/** Whether the model thinks in the reply to a request. */
function thinks(k: number): boolean {
  return k % 3 === 0;
}

/** The request as the scaffold writes it: ids as they were served, and tools whose calls can be read. */
function conversationOf(state: State, request: MeantRequest, style: number): Conversation {
  const { name } = state.options;
  const units = request.units.map((unit, k) => k === 0 && unit.kind === "system" ? named(unit, name) : unit);
  const messages = write({ ...request, units }, style).messages.map((message): typeof message => {
    if (message.role === "tool") return { ...message, toolCallId: served(state, message.toolCallId) };
    if (message.role !== "assistant") return message;
    return { ...message, toolCalls: message.toolCalls.map((call) => ({ ...call, id: served(state, call.id) })) };
  });
  const tools = ["f0", "f1", "f2", request.tools].map((tool): ToolDefinition => ({ name: tool, raw: { name: tool } }));
  return { messages, tools, settings: {} };
}

function named<Unit extends { readonly text: string }>(unit: Unit, name: string): Unit {
  return { ...unit, text: `${name}: ${unit.text}` };
}

function served(state: State, id: string): string {
  return state.ids.get(id) ?? id;
}

function digestOf(conversation: Conversation): string {
  return repeatDigest(requestUnits(conversation), {});
}

/** A reply in Qwen3's markup. Now and then it thinks. */
function markupOf(reply: MeantPiece, k: number): string {
  const thought = thinks(k) ? `<think>\nthought ${k}\n</think>\n\n` : "";
  const calls = reply.calls.map((call) => {
    const args = `{"value": ${call.value}, "also": "é"}`;
    return `<tool_call>\n{"name": "${call.name}", "arguments": ${args}}\n</tool_call>`;
  });
  return thought + [...reply.text === "" ? [] : [reply.text], ...calls].join("\n");
}

/** Lets others run for so many turns of the event loop. */
async function turnsOfTheLoop(count: number): Promise<void> {
  for (let k = 0; k < count; k++) await new Promise((resolve) => setTimeout(resolve, 0));
}

/** An order of two rows of requests, from numbers. */
export function interleaving(first: number, second: number, seed: number): ("first" | "second")[] {
  const random = randomOf(seed);
  const order: ("first" | "second")[] = [];
  for (let a = first, b = second; a + b > 0;) {
    const takesFirst = b === 0 || (a > 0 && random(2) === 0);
    order.push(takesFirst ? "first" : "second");
    if (takesFirst) a--;
    else b--;
  }
  return order;
}
