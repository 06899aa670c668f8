/** What a process knows of the turns of tasks: read once, kept by bytes, since turns never change. */

import { VerbatimError } from "../../core/errors.ts";
import { Forest } from "../../core/forest.ts";
import type { TaskRecord } from "../../core/task.ts";
import { TokenSeries } from "../../core/token_series.ts";
import type { Turn } from "../../core/turn.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TaskStore, VersionedTask } from "../../ports/task_store.ts";
import { type KeptRequest, KeptRequests, messageBytes } from "./kept_requests.ts";

/** Failed calls of a task that a process notes. */
const MOST_FAILURES = 256;

/** What a view weighs before it knows a turn. */
const EMPTY_VIEW_BYTES = 2048;

/** An answer that is still being sent after this time counts as not delivered. */
export const DELIVERY_WAIT_MS = 1000;

/** A task's turns as one process sees them. Grows as turns are committed, by whichever process. */
export class TaskView {
  /** The task's uid. */
  readonly uid: string;
  /** Where requests find their place. */
  readonly forest: Forest = new Forest();
  /** Turns by number. */
  readonly turns: Turn[] = [];
  /** The record as this process's latest commit left it; null before the first. Others may have changed it since. */
  head: VersionedTask | null = null;
  /** Requests that became turns here: the next one will repeat most of one of them. */
  readonly #requests = new KeptRequests();
  readonly #prompts: TokenSeries[] = [];
  readonly #series: TokenSeries[] = [];
  /** Whether a turn's answer went out whole, as far as this process sends it. */
  readonly #deliveries = new Map<
    number,
    { readonly sent: Promise<boolean>; readonly settle: (sent: boolean) => void }
  >();
  readonly #onGrow: (view: TaskView, bytes: number) => void;
  #bytes = EMPTY_VIEW_BYTES;
  #failures = 0;
  /** The latest turn that answers a request digest. */
  readonly repeats: Map<string, number> = new Map();
  /** Reads in progress, so that two requests of one task read its turns once. */
  #reading: Promise<void> = Promise.resolve();
  #committing: Promise<void> = Promise.resolve();

  constructor(uid: string, onGrow: (view: TaskView, bytes: number) => void) {
    this.uid = uid;
    this.#onGrow = onGrow;
  }

  /** What it weighs, roughly. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The series along the path to a turn, its sampled tokens included. */
  series(turn: number): TokenSeries {
    const series = this.#series[turn];
    if (series === undefined) throw new VerbatimError("turn_not_found", `There is no turn ${turn}`);
    return series;
  }

  /** What a turn was sampled from. */
  promptOf(turn: number): TokenSeries {
    const prompt = this.#prompts[turn];
    if (prompt === undefined) throw new VerbatimError("turn_not_found", `There is no turn ${turn}`);
    return prompt;
  }

  /** Adds the next turn. One that is known already changes nothing. `prompt`: what it was sampled from, where it is at hand. */
  add(turn: Turn, prompt: TokenSeries = this.#promptFrom(turn)): void {
    const { record } = turn;
    if (record.turn < this.turns.length) return;
    if (record.turn > this.turns.length) throw new Error(`Turn ${record.turn} was added before ${this.turns.length}`);
    this.turns.push(turn);
    this.repeats.set(record.digest, record.turn);
    this.#prompts.push(prompt);
    this.#series.push(prompt.append(turn.completion));
    this.forest.add(record.turn, record.parent, turn.detail.history);
    // Ids, logprobs and their JSON text; the record and the place in the history; what is kept of the request.
    const bytes = 4096 + 12 * turn.observation.length + 20 * turn.completion.length +
      messageBytes(turn.detail.input?.messages ?? []);
    this.#bytes += bytes;
    this.#onGrow(this, bytes);
  }

  /** Whether one more failed call is to be noted: an agent that hammers a dead engine must not fill the store. */
  noteFailure(): boolean {
    return this.#failures++ < MOST_FAILURES;
  }

  /** The request that became a turn here and of which a body repeats most; null where none is kept. */
  nearestRequest(body: Uint8Array): KeptRequest | null {
    return this.#requests.nearest(body);
  }

  /** Keeps the request that became a turn. */
  keepRequest(turn: number, { body, request }: Pick<KeptRequest, "body" | "request">): void {
    const before = this.#requests.bytes;
    const { forest } = this;
    this.#requests.keep({
      body,
      request,
      prompt: { forest, units: request.units, node: forest.turn(turn).node },
    });
    const more = this.#requests.bytes - before;
    this.#bytes += more;
    this.#onGrow(this, more);
  }

  /** This process begins to send the answer of a turn. */
  startDelivery(turn: number): void {
    const { promise: sent, resolve: settle } = Promise.withResolvers<boolean>();
    this.#deliveries.set(turn, { sent, settle });
  }

  /** The answer of a turn went out whole, or did not. Once it did, it stays delivered. */
  settleDelivery(turn: number, delivered: boolean): void {
    const known = this.#deliveries.get(turn);
    known?.settle(delivered);
    if (known === undefined || delivered) {
      this.#deliveries.set(turn, { sent: Promise.resolve(delivered), settle: () => {} });
    }
  }

  /**
   * Whether the answer went out whole; null where this process did not send it. A client may ask again before the host
   * has told us that its last answer has left: that moment is waited for.
   */
  async deliveryOf(turn: number, clock: Clock): Promise<boolean | null> {
    const known = this.#deliveries.get(turn);
    if (known === undefined) return null;
    const timer = new AbortController();
    const late = clock.sleep(DELIVERY_WAIT_MS, timer.signal).then(() => false, () => false);
    const sent = await Promise.race([known.sent, late]);
    timer.abort();
    return sent;
  }

  #promptFrom({ record, observation }: Turn): TokenSeries {
    return (record.parent === null ? TokenSeries.EMPTY : this.series(record.parent)).append(observation);
  }

  /** Runs one commit of this process at a time: they would only race against each other on the task record. */
  async exclusive<T>(commit: () => Promise<T>): Promise<T> {
    const mine = this.#committing.then(commit, commit);
    this.#committing = mine.then(() => {}, () => {});
    return await mine;
  }

  /** Reads what is missing, up to the task's head. */
  async catchUp(store: TaskStore, task: TaskRecord): Promise<void> {
    const reading = this.#reading.then(async () => {
      if (this.turns.length >= task.turns) return;
      for (const turn of await store.readTurns(task, this.turns.length, task.turns)) this.add(turn);
    });
    this.#reading = reading.catch(() => {});
    await reading;
  }
}

/** Views by uid; the least recently used go first when they weigh too much together. */
export class TaskViews {
  readonly #store: TaskStore;
  readonly #maxBytes: number;
  readonly #views = new Map<string, TaskView>();
  #bytes = 0;

  /** What all views weigh together, roughly. */
  get bytes(): number {
    return this.#bytes;
  }

  constructor(store: TaskStore, options: { maxBytes: number }) {
    this.#store = store;
    this.#maxBytes = options.maxBytes;
  }

  /** The view of a task, caught up with the record. */
  async of(task: TaskRecord): Promise<TaskView> {
    const known = this.#views.get(task.uid);
    const view = known ?? new TaskView(task.uid, (grown, bytes) => this.#grow(grown, bytes));
    this.#views.delete(task.uid);
    this.#views.set(task.uid, view);
    if (known === undefined) this.#grow(view, view.bytes);
    await view.catchUp(this.#store, task);
    return view;
  }

  /** The view of a task as it is, if this process has one. */
  known(uid: string): TaskView | null {
    return this.#views.get(uid) ?? null;
  }

  /** Forgets a task. */
  drop(uid: string): void {
    this.#bytes -= this.#views.get(uid)?.bytes ?? 0;
    this.#views.delete(uid);
  }

  #grow(grown: TaskView, bytes: number): void {
    // A view that was forgotten while a call still used it counts no more.
    if (this.#views.get(grown.uid) !== grown) return;
    this.#bytes += bytes;
    for (const view of this.#views.values()) {
      if (this.#bytes <= this.#maxBytes) return;
      if (view !== grown) this.drop(view.uid);
    }
  }
}
