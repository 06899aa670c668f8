/** Tasks and turns as the store's tests make them. They stand for no real rollout. */

import assert from "node:assert/strict";
import type { TaskEvent, TaskRecord } from "../../shared/core/task.ts";
import type { Turn, TurnDetail } from "../../shared/core/turn.ts";
import type { AppendOutcome, StagedTurn, TaskStore, VersionedTask } from "../../shared/ports/task_store.ts";

/** The moment at which the tests' tasks are made, epoch milliseconds. */
export const START_MS = 1_800_000_000_000;
/** How long they live. */
export const TTL_MS = 3_600_000;

export interface TurnShape {
  readonly observation?: Uint32Array;
  readonly completion?: Uint32Array;
  readonly logprobs?: Float32Array | Float64Array;
  readonly digest?: string;
  /** Text of the reply. */
  readonly content?: string;
  /** A grammar of any size. */
  readonly grammar?: string;
}

let made = 0;

/** A name that no other test uses. */
export function uniqueName(prefix: string): string {
  return `${prefix}${++made}`;
}

/** An open task with a fresh id, uid and key. */
export function makeTask(changes: Partial<TaskRecord> & { groupId?: string } = {}): TaskRecord {
  const { groupId = null, ...fields } = changes;
  const taskId = uniqueName("task-");
  return {
    taskId,
    uid: crypto.randomUUID().replaceAll("-", ""),
    keyHash: crypto.randomUUID().replaceAll("-", "").repeat(2),
    settings: {
      groupId,
      rolloutId: null,
      parentTaskId: null,
      routingKey: taskId,
      model: null,
      metadata: { split: "train" },
      capture: true,
      history: "append_only",
      echo: "lenient",
      onRepeat: "auto",
      reasoningHistory: "keep",
      main: null,
      fixedSampling: { temperature: 1 },
      agentMaySet: [],
      trainRoles: ["main", "branch"],
      onAbort: "resume",
      maxVersionSpan: null,
      maxTurns: null,
      maxTotalTokens: null,
      maxContextTokens: null,
    },
    status: "open",
    turns: 0,
    promptTokens: 0,
    completionTokens: 0,
    createdAtMs: START_MS,
    expiresAtMs: START_MS + TTL_MS,
    closedAtMs: null,
    outcome: null,
    cause: null,
    reward: null,
    perTurnRewards: {},
    finishMetadata: {},
    ...fields,
  };
}

/** A turn of this number; 3 observed and 2 sampled tokens unless the shape says otherwise. */
export function makeTurn(turn: number, shape: TurnShape = {}): Turn {
  const observation = shape.observation ?? Uint32Array.of(turn, 151_643, 4_294_967_295);
  const completion = shape.completion ?? Uint32Array.of(turn, 151_645);
  const logprobs = shape.logprobs ?? Float32Array.from(completion, (_, index) => -0.5 / (index + 1));
  // The history grows with the project and is JSON to a store: whatever it is made of, it must come back.
  const detail: TurnDetail = JSON.parse(JSON.stringify({
    history: { toolsDigest: "t".repeat(64), settingsDigest: "s".repeat(64), units: [{ deep: [1, null, "\ud800"] }] },
    reply: {
      role: "assistant",
      content: shape.content ?? `reply ${turn} \u{1f600} \0`,
      reasoning: null,
      toolCalls: [{ id: "call_1", name: "run", arguments: '{"a": 1.0}' }],
      form: "chat",
      source: -1,
    },
  }));
  return {
    record: {
      turn,
      parent: turn === 0 ? null : turn - 1,
      digest: shape.digest ?? uniqueName("digest-"),
      finish: { type: "stop", matched: 151_645 },
      finishReason: "tool_calls",
      parse: { status: "ok", problems: [] },
      closed: true,
      promptTokens: observation.length,
      observationTokens: observation.length,
      completionTokens: completion.length,
      reasoningTokens: null,
      cachedTokens: 0,
      weightVersions: [{ version: "7", start: 0, end: completion.length, exact: true }],
      sampling: { temperature: 1, ...(shape.grammar === undefined ? {} : { stop: [shape.grammar] }) },
      basis: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, penalties: false, constrained: false },
      ignoredFields: ["user"],
      dialect: "chat",
      model: "default",
      actor: "policy",
      rid: "r".repeat(32),
      answerId: uniqueName("chatcmpl-"),
      startedAtMs: START_MS,
      durationMs: 12.5,
      engineMs: 10.25,
      waitMs: 0,
    },
    detail,
    observation,
    completion,
    logprobs,
  };
}

/** Creates a task that must not exist yet. */
export async function createTask(store: TaskStore, task: TaskRecord): Promise<VersionedTask> {
  const outcome = await store.createTask(task, { nowMs: START_MS });
  if (outcome.kind !== "created") throw new Error(`creation ended as ${outcome.kind}`);
  return { task, version: outcome.version };
}

/** The record after this turn. */
export function taskAfter(task: TaskRecord, turn: Turn): TaskRecord {
  return {
    ...task,
    turns: task.turns + 1,
    promptTokens: task.promptTokens + turn.record.promptTokens,
    completionTokens: task.completionTokens + turn.record.completionTokens,
  };
}

/** Stages and appends a turn to a task as it was read. */
export async function appendTurn(
  store: TaskStore,
  read: VersionedTask,
  options: { turn: Turn; expectRepeat?: number | null; callId?: string },
): Promise<AppendOutcome> {
  const { turn, expectRepeat, callId = "no-call" } = options;
  const staged = await store.stageTurn(read.task, turn);
  return await store.appendTurn({ read, next: taskAfter(read.task, turn), turn, staged, expectRepeat, callId });
}

/** Appends a turn that nothing stands in the way of; the task afterwards. */
export async function mustAppend(
  store: TaskStore,
  read: VersionedTask,
  options: { turn: Turn; expectRepeat?: number | null; callId?: string },
): Promise<VersionedTask> {
  const outcome = await appendTurn(store, read, options);
  if (outcome.kind !== "committed") throw new Error(`the append ended as ${outcome.kind}`);
  return { task: taskAfter(read.task, options.turn), version: outcome.version };
}

/** Reads a task that must be there. */
export async function mustGet(store: TaskStore, taskId: string): Promise<VersionedTask> {
  const found = await store.getTask(taskId);
  if (found === null) throw new Error(`task ${taskId} is not there`);
  return found;
}

/** Ids that differ from place to place. */
export function manyIds(length: number, seed: number): Uint32Array {
  return Uint32Array.from({ length }, (_, index) => (index * 2_654_435_761 + seed) >>> 0);
}

/** Asserts that a turn came back whole, its logprobs bit for bit. */
export function assertSameTurn(stored: Turn | undefined, turn: Turn): void {
  assert.ok(stored !== undefined);
  assert.deepEqual(stored.record, turn.record);
  assert.deepEqual(stored.detail, turn.detail);
  assert.deepEqual(stored.observation, turn.observation);
  assert.deepEqual(stored.completion, turn.completion);
  // Widening a float32 is exact, so equal bits as float64 are equal values, signs of zero included.
  assert.deepEqual(bitsOf(stored.logprobs), bitsOf(turn.logprobs));
}

function bitsOf(values: ArrayLike<number>): BigUint64Array {
  return new BigUint64Array(Float64Array.from(values).buffer);
}

/** An event of this ulid. */
export function eventOf(ulid: string, turn: number): TaskEvent {
  return { ulid, atMs: START_MS + turn, type: "delivered", turn, detail: { bytes: turn, text: "\u{1f600}" } };
}

/** What a caller does that loses races: reads again and tries again, with what it staged once. False where the task is dropped. */
export async function appendUntilCommitted(
  store: TaskStore,
  taskId: string,
  attempt: { length: number; seed: number },
): Promise<boolean> {
  const made = makeTurn(0, { completion: manyIds(attempt.length, attempt.seed) });
  let staged: StagedTurn | null = null;
  for (let tries = 0; tries < 1_000; tries++) {
    const read = await mustGet(store, taskId);
    if (read.task.status === "dropped") return false;
    const turn: Turn = { ...made, record: { ...made.record, turn: read.task.turns, rid: `attempt-${attempt.seed}` } };
    staged ??= await store.stageTurn(read.task, turn);
    const next = taskAfter(read.task, turn);
    const outcome = await store.appendTurn({ read, next, turn, staged, expectRepeat: null, callId: "c" });
    if (outcome.kind === "committed") return true;
    assert.equal(outcome.kind, "task_changed");
  }
  throw new Error("the append never won");
}
