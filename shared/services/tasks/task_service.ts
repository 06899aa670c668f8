/** Tasks from creation to deletion. It knows neither HTTP nor how turns are made. */

import { canonicalJson } from "../../core/canonical_json.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { Outcome, Reward, TaskEvent, TaskRecord, TaskSettings } from "../../core/task.ts";
import type { Json } from "../../core/message.ts";
import { hashKey } from "../../core/hash_key.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { ListTasks, TaskStore, VersionedTask } from "../../ports/task_store.ts";
import { TaskKeys } from "./task_keys.ts";

/** A task's status as a reader sees it: the stored one, or `expired`. */
export type VisibleStatus = TaskRecord["status"] | "expired";

/** Settings before the task has an id; a null routing key becomes it. */
export type NewTaskSettings = Omit<TaskSettings, "routingKey"> & { readonly routingKey: string | null };

/** How a finish call was answered. */
export interface FinishRequest {
  readonly outcome: Outcome | null;
  readonly cause: string | null;
  readonly reward: Reward | null;
  readonly metadata: { readonly [key: string]: Json };
}

/** What the service needs. */
export interface TaskServiceOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly defaultTtlMs: number;
}

const UPDATE_TRIES = 50;

/** Creates, reads, changes and drops tasks. */
export class TaskService {
  readonly #store: TaskStore;
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #keys: TaskKeys;
  readonly #defaultTtlMs: number;

  constructor(options: TaskServiceOptions) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#ids = options.ids;
    this.#defaultTtlMs = options.defaultTtlMs;
    this.#keys = new TaskKeys(options.store);
  }

  /**
   * Creates a task. An id in use is `task_exists`; the same idempotency key again gives the first answer again, with
   * `created` false.
   */
  async create(request: {
    taskId: string | null;
    settings: NewTaskSettings;
    ttlMs: number | null;
    idempotencyKey: string | null;
    /** A key the agent already has, where the task is opened by its first call. */
    agentKey?: string;
  }): Promise<{ task: TaskRecord; key: string; created: boolean }> {
    const nowMs = this.#clock.now();
    const uid = this.#ids.uuid();
    const derived = await this.#keys.keyOf(uid);
    const taskId = request.taskId ?? `task_${this.#ids.ulid()}`;
    const task: TaskRecord = {
      taskId,
      uid,
      keyHash: request.agentKey === undefined ? derived.keyHash : hashKey(request.agentKey),
      settings: { ...request.settings, routingKey: request.settings.routingKey ?? taskId },
      status: "open",
      turns: 0,
      promptTokens: 0,
      completionTokens: 0,
      createdAtMs: nowMs,
      expiresAtMs: nowMs + (request.ttlMs ?? this.#defaultTtlMs),
      closedAtMs: null,
      outcome: null,
      cause: null,
      reward: null,
      perTurnRewards: {},
      finishMetadata: {},
    };
    const outcome = await this.#store.createTask(task, {
      nowMs,
      ...(request.idempotencyKey === null ? {} : { idempotencyKey: request.idempotencyKey }),
    });
    switch (outcome.kind) {
      case "created":
        return { task, key: request.agentKey ?? derived.key, created: true };
      case "repeated":
        assertSameTask(outcome.task, request);
        return { task: outcome.task, key: (await this.#keys.keyOf(outcome.task.uid)).key, created: false };
      case "exists":
        throw new VerbatimError("task_exists", `A task "${taskId}" exists and has not expired`, {
          details: { task_id: taskId },
        });
    }
  }

  /** The task, whatever its status. Unknown ids are `task_not_found`. */
  async get(taskId: string): Promise<VersionedTask> {
    const read = await this.#store.getTask(taskId);
    if (read === null) throw taskNotFound(taskId);
    return read;
  }

  /** The task, if anything of it may still be read: not dropped, not expired. */
  async getReadable(taskId: string): Promise<VersionedTask> {
    const read = await this.get(taskId);
    const status = this.statusOf(read.task);
    if (status === "dropped" || status === "expired") throw taskNotFound(taskId, status);
    return read;
  }

  /** The task an agent's key opens. Unknown, dropped and expired are null. */
  async ofKey(keyHash: string): Promise<VersionedTask | null> {
    const read = await this.#store.getTaskByKey(keyHash);
    if (read === null || read.task.status === "dropped" || this.isExpired(read.task)) return null;
    return read;
  }

  /** Whether a task has reached its end of life. */
  isExpired(task: TaskRecord): boolean {
    return this.#clock.now() >= task.expiresAtMs;
  }

  /** The status a reader sees. */
  statusOf(task: TaskRecord): VisibleStatus {
    return task.status !== "dropped" && this.isExpired(task) ? "expired" : task.status;
  }

  /** Tasks of one page. */
  async list(query: ListTasks): Promise<{ tasks: TaskRecord[]; cursor: string | null }> {
    return await this.#store.listTasks(query);
  }

  /** Marks the task as closing: new calls are refused from now on. A task that is closing or finished already stays so. */
  async startClosing(taskId: string): Promise<TaskRecord> {
    return await this.#change(taskId, (task) => task.status === "open" ? { ...task, status: "closing" } : null);
  }

  /**
   * Closes the task for good; `closedNow` where this call did. Repeated with the same reward it changes nothing; with
   * another it is `conflict`.
   */
  async close(taskId: string, request: FinishRequest): Promise<{ task: TaskRecord; closedNow: boolean }> {
    let closedNow = false;
    const task = await this.#change(taskId, (current) => {
      closedNow = current.status !== "finished";
      if (!closedNow) {
        assertSameFinish(current, request);
        return null;
      }
      return {
        ...current,
        status: "finished",
        closedAtMs: this.#clock.now(),
        // A reward may have been set before.
        outcome: request.outcome ?? current.outcome ?? "completed",
        cause: request.cause,
        reward: request.reward ?? current.reward,
        finishMetadata: request.metadata,
      };
    });
    if (closedNow) await this.#store.putEvents(task, [this.event("finished", null, {})]);
    return { task, closedNow };
  }

  /** Sets or replaces the reward, until the task expires. */
  async reward(
    taskId: string,
    request: { reward: Reward; outcome: Outcome | null; perTurn: { readonly [turn: string]: number } | null },
  ): Promise<TaskRecord> {
    return await this.#change(taskId, (task) => {
      const unknown = Object.keys(request.perTurn ?? {}).find((turn) => !isTurnOf(task, turn));
      if (unknown !== undefined) {
        throw new VerbatimError("turn_not_found", `Task "${taskId}" has no turn ${unknown}`, {
          details: { field: `per_turn.${unknown}`, turns: task.turns },
        });
      }
      return {
        ...task,
        reward: request.reward,
        outcome: request.outcome ?? task.outcome,
        perTurnRewards: { ...task.perTurnRewards, ...request.perTurn },
      };
    });
  }

  /** Drops the task: its key is dead and its data goes. Dropping a dropped task changes nothing. */
  async drop(taskId: string): Promise<TaskRecord> {
    for (let tries = 0; tries < UPDATE_TRIES; tries++) {
      const { task, version } = await this.get(taskId);
      if (task.status === "dropped") return task;
      if (this.isExpired(task)) throw taskNotFound(taskId, "expired");
      const dropped: TaskRecord = { ...task, status: "dropped", closedAtMs: this.#clock.now() };
      if (await this.#store.dropTask(dropped, version)) return dropped;
    }
    throw new VerbatimError("busy", `Task "${taskId}" is changing too fast to be dropped`, { retryAfterS: 1 });
  }

  /** An event of now. */
  event(type: TaskEvent["type"], turn: number | null, detail: TaskEvent["detail"]): TaskEvent {
    return { ulid: this.#ids.ulid(), atMs: this.#clock.now(), type, turn, detail };
  }

  async #change(taskId: string, change: (task: TaskRecord) => TaskRecord | null): Promise<TaskRecord> {
    for (let tries = 0; tries < UPDATE_TRIES; tries++) {
      const { task, version } = await this.getReadable(taskId);
      const next = change(task);
      if (next === null) return task;
      if (await this.#store.updateTask(next, version) !== null) return next;
    }
    throw new VerbatimError("busy", `Task "${taskId}" is changing too fast`, { retryAfterS: 1 });
  }
}

function taskNotFound(taskId: string, status?: VisibleStatus): VerbatimError {
  const why = status === undefined ? `There is no task "${taskId}"` : `Task "${taskId}" is ${status}`;
  return new VerbatimError("task_not_found", why, { details: { task_id: taskId, ...(status && { status }) } });
}

/** Whether a turn's number as text names one of the task's turns, in the one way in which it is looked up. */
function isTurnOf(task: TaskRecord, turn: string): boolean {
  return /^(0|[1-9]\d*)$/.test(turn) && Number(turn) < task.turns;
}

/** A key that was used for another task is a mistake of the caller's: the first answer would be a wrong one. */
function assertSameTask(task: TaskRecord, request: { taskId: string | null; settings: NewTaskSettings }): void {
  const asked = { ...request.settings, routingKey: request.settings.routingKey ?? task.taskId };
  const sameId = request.taskId === null || request.taskId === task.taskId;
  if (sameId && settingsText(asked) === settingsText(task.settings)) return;
  throw new VerbatimError("conflict", `The Idempotency-Key was used before to create task "${task.taskId}" otherwise`, {
    details: { field: "Idempotency-Key", task_id: task.taskId },
  });
}

/** Settings as comparable text: plain data, whatever the order of keys. */
function settingsText(settings: TaskSettings): string | null {
  return canonicalJson(JSON.parse(JSON.stringify(settings)));
}

function assertSameFinish(task: TaskRecord, request: FinishRequest): void {
  if (request.reward !== null && canonicalJson(request.reward) !== canonicalJson(task.reward)) {
    const was = task.reward === null ? "without a reward" : "with another reward";
    throw new VerbatimError("conflict", `Task "${task.taskId}" was finished ${was}: set it with PUT /tasks/ID/reward`, {
      details: { reward: task.reward },
    });
  }
  if (request.outcome !== null && request.outcome !== task.outcome) {
    throw new VerbatimError("conflict", `Task "${task.taskId}" was finished with another outcome`, {
      details: { outcome: task.outcome },
    });
  }
}
