/** Metrics in Prometheus' text format. */

import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Metrics } from "../ports/metrics.ts";

/** Seconds; from a replay in memory to a long generation. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];

/** Counters of this process. `callsInFlight` is asked at each scrape. */
export function createPrometheusMetrics(options: { readonly callsInFlight: () => number }): Metrics {
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
  new Gauge({
    name: "verbatim_calls_in_flight",
    help: "Agent calls of tasks under way in this process.",
    registers,
    collect() {
      this.set(options.callsInFlight());
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
    },
    taskFinished({ outcome, reason }) {
      // A reason names a message by its index; a label must not grow with conversations.
      finished.inc({ outcome, reason: reason?.replace(/ \d+.*$/, "") ?? "none" });
    },
    text: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}
