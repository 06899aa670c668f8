/** Metrics in Prometheus' text format. */

import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { TurnRecord } from "../core/turn.ts";
import type { Metrics, MetricsSources } from "../ports/metrics.ts";

/** Seconds; from a replay in memory to a long generation. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];

/** Shares of a parent's series, finer where a healthy cache is. */
const SHARES = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1];
/** An engine that has cached less of the parent's series than this has lost it, or is another one. */
const MISSED_SHARE = 0.5;

/** Counters of this process. The sources are asked at each scrape. */
export function createPrometheusMetrics(sources: MetricsSources): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const calls = new Counter({
    name: "verbatim_calls_total",
    help: "Agent calls that ended, by dialect and outcome.",
    labelNames: ["dialect", "outcome"],
    registers,
  });
  const callSeconds = new Histogram({
    name: "verbatim_call_seconds",
    help: "From a call's arrival to its answer.",
    labelNames: ["dialect"],
    buckets: SECONDS,
    registers,
  });
  const turns = new Counter({
    name: "verbatim_turns_total",
    help: "Committed turns, by relation to earlier turns and by how the earlier reply came back.",
    labelNames: ["relation", "echo"],
    registers,
  });
  const actors = new Counter({
    name: "verbatim_turns_by_actor_total",
    help: "Committed turns, by whose action they are: policy, or teacher under roll-in.",
    labelNames: ["actor"],
    registers,
  });
  const tokens = new Counter({
    name: "verbatim_tokens_total",
    help:
      "Tokens of committed turns: prompt (all the engine was given), observation (newly rendered), cached (by the engine), sampled (by the policy), teacher (actions it did not sample).",
    labelNames: ["kind"],
    registers,
  });
  const engineSeconds = new Histogram({
    name: "verbatim_engine_seconds",
    help: "Engine time of committed turns.",
    buckets: SECONDS,
    registers,
  });
  const finished = new Counter({
    name: "verbatim_tasks_finished_total",
    help: "Finished tasks, by outcome and by why the capture is invalid (none where it is valid).",
    labelNames: ["outcome", "reason"],
    registers,
  });
  const textTokens = new Counter({
    name: "verbatim_text_tokens_total",
    help:
      "Tokens of text-level models as their APIs count them: prompt, cached (of the prompt), completion, reasoning (of the completion).",
    labelNames: ["model", "kind"],
    registers,
  });
  const textCost = new Counter({
    name: "verbatim_text_cost_usd_total",
    help: "US dollars that calls of text-level models cost, where their price is known.",
    labelNames: ["model"],
    registers,
  });
  const textUnpriced = new Counter({
    name: "verbatim_text_unpriced_calls_total",
    help: "Calls of text-level models whose price is not known: the cost counter lacks them.",
    labelNames: ["model"],
    registers,
  });
  new Gauge({
    name: "verbatim_calls_in_flight",
    help: "Agent calls of tasks under way in this process.",
    registers,
    collect() {
      this.set(sources.callsInFlight());
    },
  });
  const cacheShare = new Histogram({
    name: "verbatim_prefix_cache_share",
    help: "Of turns that extend another: cached prompt tokens as a share of the series they extend.",
    buckets: SHARES,
    registers,
  });
  const cacheMisses = new Counter({
    name: "verbatim_prefix_cache_misses_total",
    help:
      "Turns that extend another of whose series the engine had cached less than half, by whether weights had changed " +
      "since (an update flushes caches) or not (another worker, or an evicted cache).",
    labelNames: ["weights"],
    registers,
  });
  const otherWeights = new Counter({
    name: "verbatim_turns_of_other_weights_total",
    help:
      "Turns that ended under other weights than the trainer last told: sampled across an update, or by a worker that " +
      "missed it.",
    registers,
  });
  new Gauge({
    name: "verbatim_generations",
    help: "Generations at the engine (running) and in the queue before it (waiting), by model.",
    labelNames: ["model", "state"],
    registers,
    collect() {
      for (const { model, running, waiting } of sources.generations()) {
        this.set({ model, state: "running" }, running);
        this.set({ model, state: "waiting" }, waiting);
      }
    },
  });
  new Gauge({
    name: "verbatim_engine_paused",
    help: "1 while generations wait for the engines to go on, by model.",
    labelNames: ["model"],
    registers,
    collect() {
      for (const { model, paused } of sources.generations()) this.set({ model }, paused ? 1 : 0);
    },
  });
  new Counter({
    name: "verbatim_generations_resumed_total",
    help: "Times a generation went on from its own tokens after the engine had given it up, by model.",
    labelNames: ["model"],
    registers,
    collect() {
      this.reset();
      for (const { model, resumed } of sources.generations()) this.inc({ model }, resumed);
    },
  });
  new Counter({
    name: "verbatim_teacher_sequences_total",
    help: "Sequences that the teacher scored, or failed to score for good.",
    labelNames: ["outcome"],
    registers,
    collect() {
      this.reset();
      const load = sources.teacher();
      if (load === null) return;
      this.inc({ outcome: "scored" }, load.scored);
      this.inc({ outcome: "failed" }, load.failed);
    },
  });
  new Counter({
    name: "verbatim_teacher_retries_total",
    help: "Times the teacher was asked again.",
    registers,
    collect() {
      this.reset();
      this.inc(sources.teacher()?.retries ?? 0);
    },
  });
  new Counter({
    name: "verbatim_teacher_tokens_total",
    help: "Response tokens of the sequences that the teacher scored.",
    registers,
    collect() {
      this.reset();
      this.inc(sources.teacher()?.tokens ?? 0);
    },
  });
  return {
    callEnded({ dialect, outcome, seconds }) {
      calls.inc({ dialect, outcome });
      callSeconds.observe({ dialect }, seconds);
    },
    turnCommitted(record, place) {
      turns.inc({ relation: place.relation, echo: place.echo ?? "none" });
      actors.inc({ actor: record.actor });
      tokens.inc({ kind: "prompt" }, record.promptTokens);
      tokens.inc({ kind: "observation" }, record.observationTokens);
      tokens.inc({ kind: "cached" }, record.cachedTokens ?? 0);
      tokens.inc({ kind: record.actor === "teacher" ? "teacher" : "sampled" }, record.completionTokens);
      // The time of a teacher's turn is not the engine's.
      if (record.actor === "policy") engineSeconds.observe(record.engineMs / 1000);
      const last = record.weightVersions.at(-1)?.version ?? null;
      if (place.toldVersion !== null && last !== null && last !== place.toldVersion) otherWeights.inc();
      const share = cachedShare(record);
      if (place.parent === null || share === null) return;
      cacheShare.observe(share);
      if (share < MISSED_SHARE) cacheMisses.inc({ weights: sameWeights(place.parent, record) ? "same" : "changed" });
    },
    taskFinished({ outcome, reason }) {
      // A reason names a message by its index; a label must not grow with conversations.
      finished.inc({ outcome, reason: reason?.replace(/ \d+.*$/, "") ?? "none" });
    },
    textAnswered({ model, promptTokens, cachedTokens, completionTokens, reasoningTokens, costUsd }) {
      textTokens.inc({ model, kind: "prompt" }, promptTokens);
      textTokens.inc({ model, kind: "cached" }, cachedTokens ?? 0);
      textTokens.inc({ model, kind: "completion" }, completionTokens);
      textTokens.inc({ model, kind: "reasoning" }, reasoningTokens ?? 0);
      if (costUsd === null) textUnpriced.inc({ model });
      else textCost.inc({ model }, costUsd);
    },
    text: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

/** Cached tokens as a share of the series that the turn extends; null where it extends none, or the engine did not say. */
function cachedShare({ parent, promptTokens, observationTokens, cachedTokens }: TurnRecord): number | null {
  const series = promptTokens - observationTokens;
  return parent === null || cachedTokens === null || series <= 0 ? null : Math.min(1, cachedTokens / series);
}

/** Whether a turn began with the weights that its parent ended with, as far as they are known. */
function sameWeights(parent: TurnRecord, record: TurnRecord): boolean {
  const [before, after] = [parent.weightVersions.at(-1), record.weightVersions[0]];
  return before === undefined || after === undefined || before.version === after.version;
}
