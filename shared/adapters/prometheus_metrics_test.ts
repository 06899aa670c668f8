import assert from "node:assert/strict";
import { makeTurn } from "../../tests/contracts/store_fixtures.ts";
import type { TurnRecord } from "../core/turn.ts";
import type { MetricsSources } from "../ports/metrics.ts";
import { createPrometheusMetrics } from "./prometheus_metrics.ts";

/** A process that has nothing to do. */
const NOTHING: MetricsSources = { callsInFlight: () => 0, generations: () => [], teacher: () => null };

Deno.test("createPrometheusMetrics() counts calls, turns and finished tasks by reason", async () => {
  let inFlight = 3;
  const metrics = createPrometheusMetrics({ ...NOTHING, callsInFlight: () => inFlight });
  metrics.callEnded({ dialect: "chat", outcome: "error:engine_timeout", seconds: 0.2 });
  metrics.taskFinished({ outcome: "completed", reason: "rewritten at message 17" });
  metrics.taskFinished({ outcome: "failed", reason: null });
  inFlight = 4;
  const { contentType, body } = await metrics.text();
  assert.match(contentType, /^text\/plain/);
  assert.match(body, /verbatim_calls_total\{dialect="chat",outcome="error:engine_timeout"\} 1/);
  assert.match(body, /verbatim_tasks_finished_total\{outcome="completed",reason="rewritten at message"\} 1/);
  assert.match(body, /verbatim_tasks_finished_total\{outcome="failed",reason="none"\} 1/);
  assert.match(body, /verbatim_calls_in_flight 4/);
});

Deno.test("createPrometheusMetrics() counts the teacher's turns and tokens apart", async () => {
  const metrics = createPrometheusMetrics(NOTHING);
  const place = { relation: "append", echo: "exact", parent: null, toldVersion: null } as const;
  const { record } = makeTurn(0, { completion: Uint32Array.of(1, 2), logprobs: Float32Array.of(-1, -1) });
  metrics.turnCommitted(record, place);
  metrics.turnCommitted({ ...record, actor: "teacher", completionTokens: 5 }, place);
  const { body } = await metrics.text();
  assert.match(body, /verbatim_turns_by_actor_total\{actor="policy"\} 1\n/);
  assert.match(body, /verbatim_turns_by_actor_total\{actor="teacher"\} 1\n/);
  assert.match(body, /verbatim_tokens_total\{kind="sampled"\} 2\n/);
  assert.match(body, /verbatim_tokens_total\{kind="teacher"\} 5\n/);
  assert.match(body, /verbatim_engine_seconds_count 1\n/);
});

Deno.test("createPrometheusMetrics() shows generations at the engine, in the queue, and gone on with", async () => {
  const loads = [{ model: "m", running: 3, waiting: 5, paused: false, resumed: 2 }];
  const metrics = createPrometheusMetrics({ ...NOTHING, generations: () => loads });
  const shown = async () => (await metrics.text()).body;
  assert.match(await shown(), /verbatim_generations\{model="m",state="running"\} 3/);
  loads[0] = { model: "m", running: 0, waiting: 8, paused: true, resumed: 4 };
  const body = await shown();
  assert.match(body, /verbatim_generations\{model="m",state="waiting"\} 8/);
  assert.match(body, /verbatim_engine_paused\{model="m"\} 1/);
  assert.match(body, /verbatim_generations_resumed_total\{model="m"\} 4/);
});

Deno.test("createPrometheusMetrics() counts turns whose engine had lost the series they extend", async () => {
  const metrics = createPrometheusMetrics(NOTHING);
  const root = recordOf({ parent: null, cachedTokens: 0, version: "1" });
  const place = { relation: "append", echo: "exact", toldVersion: "1" } as const;
  metrics.turnCommitted(root, { ...place, parent: null });
  const turns: [number | null, string][] = [[80, "1"], [40, "1"], [39, "1"], [0, "2"], [null, "1"]];
  for (const [cachedTokens, version] of turns) {
    metrics.turnCommitted(recordOf({ parent: 0, cachedTokens, version }), { ...place, parent: root });
  }
  const { body } = await metrics.text();
  assert.match(body, /verbatim_prefix_cache_share_count 4/);
  assert.match(body, /verbatim_prefix_cache_share_bucket\{le="0.5"\} 3/);
  assert.match(body, /verbatim_prefix_cache_misses_total\{weights="same"\} 1/);
  assert.match(body, /verbatim_prefix_cache_misses_total\{weights="changed"\} 1/);
  assert.match(body, /verbatim_turns_of_other_weights_total 1\n/);
});

/** A turn of a prompt of 100 tokens, of which its parent's series has 80. */
function recordOf(told: { parent: number | null; cachedTokens: number | null; version: string }): TurnRecord {
  const { record } = makeTurn(1, {});
  const { version, ...rest } = told;
  const weightVersions = [{ version, start: 0, end: record.completionTokens, exact: true }];
  return { ...record, ...rest, promptTokens: 100, observationTokens: 20, weightVersions };
}

Deno.test("createPrometheusMetrics() shows what the teacher scored, failed at, and was asked again", async () => {
  const idle = (await createPrometheusMetrics(NOTHING).text()).body;
  assert.doesNotMatch(idle, /verbatim_teacher_sequences_total\{/);
  const load = { scored: 5, failed: 1, retries: 3, tokens: 700 };
  const { body } = await createPrometheusMetrics({ ...NOTHING, teacher: () => load }).text();
  assert.match(body, /verbatim_teacher_sequences_total\{outcome="scored"\} 5\n/);
  assert.match(body, /verbatim_teacher_sequences_total\{outcome="failed"\} 1\n/);
  assert.match(body, /verbatim_teacher_retries_total 3\n/);
  assert.match(body, /verbatim_teacher_tokens_total 700\n/);
});
