/** The turn, step by step: from an agent's request to a committed turn. It knows no dialect, no engine and no store by name. */

import { VerbatimError } from "../../core/errors.ts";
import { keepInput } from "../../core/kept_input.ts";
import { locate, type Located } from "../../core/locate.ts";
import { matchesMain } from "../../core/main_selector.ts";
import { requestHistory } from "../../core/record_history.ts";
import { repeatDigest } from "../../core/repeat_digest.ts";
import { type RequestUnits, requestUnits } from "../../core/request_units.ts";
import { isTeachersTurn, turnPosition } from "../../core/rollin.ts";
import type { Json } from "../../core/message.ts";
import { withTokenLimit } from "../../core/sampling.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { RequestHistory } from "../../core/turn_history.ts";
import type { Background } from "../../ports/background.ts";
import type { Turn, TurnRecord } from "../../core/turn.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { CallOutcome, Metrics } from "../../ports/metrics.ts";
import type { TaskStore, VersionedTask } from "../../ports/task_store.ts";
import type { AgentCall, Following } from "./agent_call.ts";
import { answerOfTurn, eventsOfAnswer } from "./answer_of_turn.ts";
import type { CallLeases } from "./call_leases.ts";
import { wasDelivered } from "./deliveries.ts";
import type { CallsInFlight } from "./calls_in_flight.ts";
import type { ExtrasCapture } from "../extras/capture_extras.ts";
import { checkSamplingIds } from "./check_sampling_ids.ts";
import { commitTurn } from "./commit_turn.ts";
import { tokensLeft } from "./context_length.ts";
import { type EffectiveSampling, effectiveSampling } from "./effective_sampling.ts";
import type { TeacherLabeller } from "../teacher/label_turn.ts";
import type { KeptRequest } from "./kept_requests.ts";
import { placePrompt } from "./place_prompt.ts";
import { type GeneratedTurn, type PreparedTurn, runTurn } from "./run_turn.ts";
import { abortError, type Answer, SharedCall } from "./shared_call.ts";
import { assertTurnLeft, tokensInBudget } from "../tasks/task_budget.ts";
import type { TaskService } from "../tasks/task_service.ts";
import type { TaskView, TaskViews } from "./task_views.ts";

/** What the recorder needs. */
export interface TurnRecorderOptions {
  readonly store: TaskStore;
  readonly tasks: TaskService;
  readonly views: TaskViews;
  readonly inFlight: CallsInFlight;
  readonly leases: CallLeases;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly metrics: Metrics;
  readonly background: Background;
  readonly extras: ExtrasCapture;
  /** Acts where a task's roll-in says so; null without a teacher. */
  readonly labeller: TeacherLabeller | null;
  /** The weights that a model's workers were last told to have, or null. */
  readonly toldVersion: (model: string) => string | null;
  /** Told of every turn once it is committed. */
  readonly onTurn?: (task: TaskRecord, turn: number) => void;
}

/** A call on its way, with what is known of it before anything is read. */
interface Running {
  readonly agent: AgentCall;
  readonly call: SharedCall;
  readonly callId: string;
  readonly units: RequestUnits;
  readonly effective: EffectiveSampling;
  readonly digest: string;
  /** Whether the same request again means the same answer again. */
  readonly wantsReplay: boolean;
}

/** Most bytes of a failed request's place, as JSON, that are kept; a KV value holds 64 KiB. */
const MOST_PLACE_BYTES = 48_000;

/** An answer that an agent went on from before it was whole is waited for so long. */
const LONGEST_ANSWER_WAIT_MS = 5000;

/** How a call ended well. */
interface Ended {
  readonly outcome: CallOutcome;
  readonly answer: Answer;
}

/** Serves agents' calls and records them as turns. */
export class TurnRecorder {
  readonly #options: TurnRecorderOptions;

  constructor(options: TurnRecorderOptions) {
    this.#options = options;
  }

  /**
   * Takes a call. It is registered before anything is awaited, so that a repeat that arrives a moment later finds it.
   * Everything that can fail fails at the waiter.
   */
  begin(agent: AgentCall): Following {
    const { ids, inFlight } = this.#options;
    const task = agent.read?.task ?? null;
    const units = requestUnits(agent.conversation, {
      selected: matchesMain(task?.settings.main ?? null, agent),
      known: agent.nearest?.request ?? null,
    });
    const effective = effectiveSampling(task?.settings ?? null, agent.wished);
    const digest = repeatDigest(units, effective.sampling, { toolChoice: agent.toolChoice });
    const onRepeat = task?.settings.onRepeat ?? "resample";
    const wantsReplay = onRepeat === "replay" || (onRepeat === "auto" && agent.isRetry);
    const known = task !== null && wantsReplay ? inFlight.find(task.uid, digest) : null;
    if (known !== null) return this.#follow(agent, known.call, { joined: true });
    const call = new SharedCall();
    const running: Running = { agent, call, callId: ids.uuid(), units, effective, digest, wantsReplay };
    const following = this.#follow(agent, call, { joined: false });
    const ended = this.#run(running);
    if (task !== null) inFlight.add(task.uid, { callId: running.callId, digest, call, units, ended });
    return following;
  }

  /** The request of a task, of those known here, that a body repeats most of; null where there is none. */
  nearestRequest(task: TaskRecord, body: Uint8Array): KeptRequest | null {
    return this.#options.views.known(task.uid)?.nearestRequest(body) ?? null;
  }

  /** The turns that were committed when the task was read, for requests that name earlier answers. */
  async turnsOf(read: VersionedTask): Promise<readonly Turn[]> {
    return (await this.#options.views.of(read.task)).turns;
  }

  /** Number of tokens an engine would be given for this call. Nothing is sent, nothing is kept. */
  async countPrompt(agent: AgentCall, signal: AbortSignal): Promise<number> {
    const task = agent.read?.task ?? null;
    const recorded = task?.settings.capture ? { task, view: await this.#options.views.of(task) } : null;
    const { conversation, nearest, model: { renderer } } = agent;
    const units = requestUnits(conversation, { known: nearest?.request ?? null });
    const known = nearest?.prompt ?? null;
    return (await placePrompt({ conversation, units, known, renderer, recorded }, signal)).prompt.length;
  }

  /** A client's place at a call. One that joined a call under way is given its answer again: a replay. */
  #follow(agent: AgentCall, call: SharedCall, options: { readonly joined: boolean }): Following {
    return {
      waiter: call.join({ streaming: agent.stream }),
      settled: async (answer, delivered) => {
        const task = agent.read?.task;
        if (task === undefined || answer.turn === null) return;
        const view = await this.#options.views.of(task);
        view.settleDelivery(answer.turn, delivered);
        const { tasks, store } = this.#options;
        const event = tasks.event(delivered ? "delivered" : "undelivered", answer.turn, {});
        // A view that was forgotten during the call knows the turns of its beginning only.
        const after = Math.max(view.turns.length, answer.turn + 1);
        await store.putEvents(
          task,
          options.joined ? [tasks.event("replayed", answer.turn, { after }), event] : [event],
          { mayLinger: true },
        );
      },
    };
  }

  /** Runs a call to its end; never rejects. */
  async #run(running: Running): Promise<void> {
    const { clock, metrics } = this.#options;
    const { call, agent } = running;
    let outcome: CallOutcome;
    try {
      const { read } = agent;
      const ended = read === null || !read.task.settings.capture
        ? await this.#unrecorded(running, read?.task ?? null)
        : await this.#recorded(running, read);
      outcome = ended.outcome;
      call.emit({ type: "end", answer: ended.answer });
    } catch (thrown) {
      // An abort's reason is what happened; what it made of the engine call is not.
      const error = call.signal.aborted ? abortError(call.signal.reason) : thrown;
      const code = error instanceof VerbatimError ? error.code : "internal";
      outcome = `error:${code}`;
      call.fail(error);
      if (agent.read?.task.settings.capture === true) {
        this.#options.background.run("note a failed call", this.#noteFailure(running, agent.read.task, code));
      }
    }
    metrics.callEnded({ dialect: agent.dialect, outcome, seconds: (clock.now() - agent.arrivedAtMs) / 1000 });
  }

  async #unrecorded(running: Running, task: TaskRecord | null): Promise<Ended> {
    const prepared = await this.#prepare(running, task, null);
    return { outcome: "unrecorded", answer: (await runTurn(prepared, running.call, this.#options)).answer };
  }

  async #recorded(running: Running, read: VersionedTask): Promise<Ended> {
    const { store, views, clock, metrics } = this.#options;
    const { agent, call } = running;
    const { task } = read;
    const view = await views.of(task);
    const earlier = await this.#earlierAnswer(running, task, view);
    if (earlier !== null) return await this.#replay(running, task, view, earlier);

    await this.#answersBefore(running, task, view);
    const prepared = await this.#prepare(running, task, view);
    const lease = this.#options.leases.take(task, { ...running, rid: prepared.rid });
    let committed = false;
    try {
      const generated = await this.#withExtras(task, prepared, await runTurn(prepared, call, this.#options));
      call.signal.throwIfAborted();
      await lease.stop();
      const commit = (expectRepeat: null | undefined) =>
        view.exclusive(() =>
          commitTurn({ store, clock, view }, read, {
            turn: generated.turn,
            units: running.units,
            body: agent.body,
            located: prepared.place,
            prompt: prepared.prompt,
            expectRepeat,
            callId: running.callId,
          })
        );
      let outcome = await commit(running.wantsReplay ? null : undefined);
      if (outcome.kind === "repeat_changed") {
        // Another process answered the same request first. Who has shown nothing yet gives that answer; else both stand.
        if (call.takeBack()) return await this.#replay(running, task, view, outcome.turn);
        outcome = await commit(undefined);
      }
      if (outcome.kind !== "committed") throw new Error("A commit that expects nothing was refused for a repeat");
      committed = true;
      const { record } = outcome.turn;
      if (prepared.place !== null) {
        const toldVersion = this.#options.toldVersion(agent.model.name);
        metrics.turnCommitted(record, { ...prepared.place, parent: parentOf(record, view), toldVersion });
      }
      this.#options.onTurn?.(view.head?.task ?? task, record.turn);
      view.startDelivery(record.turn);
      return { outcome: "turn", answer: { ...generated.answer, turn: record.turn } };
    } finally {
      lease.release({ removed: committed });
    }
  }

  /**
   * An agent may go on from an answer before its last chunk, which leaves after the commit: the turn it goes on from is
   * then about to be committed, and is waited for. Else the agent's own history would be rendered in its place.
   */
  async #answersBefore({ agent, call, units }: Running, task: TaskRecord, view: TaskView): Promise<void> {
    const { inFlight, clock } = this.#options;
    const answering = inFlight.answering(view.uid, units);
    if (answering.length === 0) return;
    // Another sample of that prompt may be committed, of which this is no echo.
    const { extend } = locate(view.forest, units, { echo: "strict", known: agent.nearest?.prompt ?? null });
    const known = extend === null ? 0 : view.forest.turn(extend.turn).node.depth;
    const missing = answering.filter((other) => other.units.units.length > known);
    if (missing.length === 0) return;
    const timer = new AbortController();
    const tooLong = clock.sleep(LONGEST_ANSWER_WAIT_MS, AbortSignal.any([timer.signal, call.signal])).catch(() => {});
    await Promise.race([Promise.all(missing.map(({ ended }) => ended)), tooLong]);
    timer.abort();
    call.signal.throwIfAborted();
    // A view that was forgotten during the answer and is read anew was not told of its turn.
    await this.#catchUp(task, view);
  }

  /** Keeps what the task captures beside tokens; its bytes are written before the turn is. */
  async #withExtras(task: TaskRecord, prepared: PreparedTurn, generated: GeneratedTurn): Promise<GeneratedTurn> {
    if (prepared.extras === null) return generated;
    const extras = await this.#options.extras.keep(task, prepared.extras, generated.extras);
    return { ...generated, turn: { ...generated.turn, record: { ...generated.turn.record, extras } } };
  }

  /** The turn that already answers this request, or null: one that is asked for again, or whose answer did not arrive. */
  async #earlierAnswer(running: Running, task: TaskRecord, view: TaskView): Promise<number | null> {
    if (task.settings.onRepeat === "resample") return null;
    const turn = view.repeats.get(running.digest);
    if (turn !== undefined) {
      const asked = { task, view, turn, signal: running.call.signal };
      return running.wantsReplay || !await wasDelivered(this.#options, asked) ? turn : null;
    }
    return running.wantsReplay ? await this.#options.leases.answerElsewhere(task, view, running) : null;
  }

  async #replay(running: Running, task: TaskRecord, view: TaskView, turn: number): Promise<Ended> {
    const { store, tasks } = this.#options;
    await this.#catchUp(task, view);
    const answered = view.turns[turn];
    if (answered === undefined) throw new VerbatimError("internal", "The turn to replay can't be read");
    const answer = answerOfTurn(answered, view);
    await store.putEvents(task, [tasks.event("replayed", turn, { after: view.turns.length })]);
    for (const event of eventsOfAnswer(answer)) if (event.type !== "end") running.call.emit(event);
    return { outcome: "replay", answer };
  }

  /** Reads the turns that were committed since the task was read, by whomever. */
  async #catchUp(task: TaskRecord, view: TaskView): Promise<void> {
    const { store } = this.#options;
    const current = await store.getTask(task.taskId);
    if (current !== null && current.task.uid === task.uid) await view.catchUp(store, current.task);
  }

  /**
   * A failed call leaves no turn, but its retry is told from a new request by what it left: its place. A place too
   * large to keep is left out, and its retry then reads as what it is without it.
   */
  async #noteFailure(running: Running, task: TaskRecord, code: string): Promise<void> {
    const { store, tasks, views } = this.#options;
    const view = await views.of(task);
    if (code === "task_closed" || !view.noteFailure()) return;
    const history = requestHistory(view.forest, running.units);
    const place = bytesOf(history) <= MOST_PLACE_BYTES ? history : null;
    await store.putEvents(task, [
      tasks.event("failed", null, { code, after: view.turns.length, history: toJson(place) }),
    ]);
  }

  /** Renders the prompt and settles how much may be sampled. Nothing is sent and nothing is consumed here. */
  async #prepare(running: Running, task: TaskRecord | null, view: TaskView | null): Promise<PreparedTurn> {
    const { ids, inFlight } = this.#options;
    const { agent, call, effective } = running;
    const { conversation, model: { renderer, maxContextTokens } } = agent;
    checkSamplingIds(effective.sampling, renderer.tokenizer.vocabSize, "");
    const known = latestKnown(task, view);
    if (known !== null) assertTurnLeft(known, Math.max(0, inFlight.count(known.uid) - 1));
    const recorded = task === null || view === null ? null : { task, view };
    const request = { conversation, units: running.units, known: agent.nearest?.prompt ?? null, renderer, recorded };
    const { located, parent, rewriteOf, rendered, prompt } = await placePrompt(request, call.signal);
    const left = tokensLeft({
      promptTokens: prompt.length,
      maxContextTokens: Math.min(maxContextTokens, task?.settings.maxContextTokens ?? Infinity),
      wished: effective.sampling.max_new_tokens ?? null,
    });
    const inBudget = known === null ? null : tokensInBudget(known, prompt.length);
    return {
      agent,
      task,
      parent,
      rewriteOf,
      place: located,
      observation: rendered.ids,
      prompt,
      opensReasoning: rendered.opensReasoning,
      sampling: withTokenLimit(effective.sampling, Math.min(left, inBudget ?? Infinity)),
      ignoredFields: [...new Set([...agent.ignoredFields, ...effective.ignored])],
      input: agent.keepsInput && view !== null ? keepInput(conversation.messages, view.turns, parent) : null,
      digest: running.digest,
      rid: ids.uuid(),
      answerId: ids.hex(24),
      teacher: this.#teacherOf(recorded, located),
      extras: recorded === null
        ? null
        : await this.#options.extras.plan(recorded.task, { model: agent.model, turns: recorded.view.turns, parent }),
    };
  }

  /** Who acts in the policy's place at this point of the history, or null. */
  #teacherOf(recorded: { task: TaskRecord; view: TaskView } | null, located: Located | null): TeacherLabeller | null {
    const rollin = recorded?.task.settings.rollin;
    if (recorded === null || rollin === undefined) return null;
    if (!isTeachersTurn(rollin, turnPosition(recorded.view.forest, located?.related ?? null))) return null;
    const { labeller } = this.#options;
    if (labeller !== null) return labeller;
    throw new VerbatimError("teacher_failed", "The turn is the teacher's, and this process has none configured", {
      retryable: false,
    });
  }
}

function parentOf({ parent }: TurnRecord, view: TaskView): TurnRecord | null {
  return parent === null ? null : view.turns[parent]?.record ?? null;
}

function bytesOf(place: RequestHistory): number {
  return new TextEncoder().encode(JSON.stringify(place)).length;
}

function toJson(place: RequestHistory | null): Json {
  return JSON.parse(JSON.stringify(place));
}

/** The record as it is known now: turns may have been committed since the request's key was looked up. */
function latestKnown(task: TaskRecord | null, view: TaskView | null): TaskRecord | null {
  const head = view?.head?.task;
  return task !== null && head !== undefined && head.turns > task.turns ? head : task;
}
