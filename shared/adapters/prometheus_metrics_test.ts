import assert from "node:assert/strict";
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
