/** The turn, step by step: from an agent's request to a committed turn. It knows no dialect, no engine and no store by name. */

import { VerbatimError } from "../../core/errors.ts";
import { matchesMain } from "../../core/main_selector.ts";
import { repeatDigest } from "../../core/repeat_digest.ts";
import { requestUnits } from "../../core/request_units.ts";
import type { TaskRecord } from "../../core/task.ts";
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
import { awaitAnswers, awaitGivenUp } from "./await_answers.ts";
import { commitTurn } from "./commit_turn.ts";
import { effectiveSampling } from "./effective_sampling.ts";
import type { TeacherLabeller } from "../teacher/label_turn.ts";
import type { KeptRequest } from "./kept_requests.ts";
import { noteFailure } from "./note_failure.ts";
import { placePrompt } from "./place_prompt.ts";
import { prepareTurn } from "./prepare_turn.ts";
import type { RunningCall } from "./running_call.ts";
import { type GeneratedTurn, type PreparedTurn, runTurn } from "./run_turn.ts";
import { abortError, type Answer, SharedCall } from "./shared_call.ts";
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
   * Everything that can fail fails at the waiter, but for a process that takes no more calls: that is thrown.
   */
  begin(agent: AgentCall): Following {
    const { ids, inFlight } = this.#options;
    inFlight.assertOpen();
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
    const running: RunningCall = { agent, call, callId: ids.uuid(), units, effective, digest, wantsReplay };
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
  async #run(running: RunningCall): Promise<void> {
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
        this.#options.background.run(
          "note a failed call",
          noteFailure(this.#options, { units: running.units, task: agent.read.task, code }),
        );
      }
    }
    metrics.callEnded({ dialect: agent.dialect, outcome, seconds: (clock.now() - agent.arrivedAtMs) / 1000 });
  }

  async #unrecorded(running: RunningCall, task: TaskRecord | null): Promise<Ended> {
    const prepared = await prepareTurn(this.#options, running, { task, view: null });
    return { outcome: "unrecorded", answer: (await runTurn(prepared, running.call, this.#options)).answer };
  }

  async #recorded(running: RunningCall, read: VersionedTask): Promise<Ended> {
    const { store, views, clock, metrics } = this.#options;
    const { agent, call } = running;
    const { task } = read;
    const view = await views.of(task);
    if (running.wantsReplay && await awaitGivenUp(this.#options, running, task.uid)) await this.#catchUp(task, view);
    const earlier = await this.#earlierAnswer(running, task, view);
    if (earlier !== null) return await this.#replay(running, task, view, earlier);

    // A view that was forgotten during an answer and is read anew was not told of its turn.
    if (await awaitAnswers(this.#options, running, view)) await this.#catchUp(task, view);
    const prepared = await prepareTurn(this.#options, running, { task, view });
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

  /** Keeps what the task captures beside tokens; its bytes are written before the turn is. */
  async #withExtras(task: TaskRecord, prepared: PreparedTurn, generated: GeneratedTurn): Promise<GeneratedTurn> {
    if (prepared.extras === null) return generated;
    const extras = await this.#options.extras.keep(task, prepared.extras, generated.extras);
    return { ...generated, turn: { ...generated.turn, record: { ...generated.turn.record, extras } } };
  }

  /** The turn that already answers this request, or null: one that is asked for again, or whose answer did not arrive. */
  async #earlierAnswer(running: RunningCall, task: TaskRecord, view: TaskView): Promise<number | null> {
    if (task.settings.onRepeat === "resample") return null;
    const turn = view.repeats.get(running.digest);
    if (turn !== undefined) {
      const asked = { task, view, turn, signal: running.call.signal };
      return running.wantsReplay || !await wasDelivered(this.#options, asked) ? turn : null;
    }
    return running.wantsReplay ? await this.#options.leases.answerElsewhere(task, view, running) : null;
  }

  async #replay(running: RunningCall, task: TaskRecord, view: TaskView, turn: number): Promise<Ended> {
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
}

function parentOf({ parent }: TurnRecord, view: TaskView): TurnRecord | null {
  return parent === null ? null : view.turns[parent]?.record ?? null;
}
