import assert from "node:assert/strict";
import { makeTurn } from "../../tests/contracts/store_fixtures.ts";
import { createPrometheusMetrics } from "./prometheus_metrics.ts";

Deno.test("createPrometheusMetrics() counts calls, turns and finished tasks by reason", async () => {
  let inFlight = 3;
  const metrics = createPrometheusMetrics({ callsInFlight: () => inFlight });
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
  const metrics = createPrometheusMetrics({ callsInFlight: () => 0 });
  const place = { relation: "append", echo: "exact" } as const;
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
