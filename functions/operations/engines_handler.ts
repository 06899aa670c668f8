/** The engines, for the trainer: seen with `GET /engines`, steered with `POST /engines/update`. Thin. */

import { type Context, Hono } from "hono";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { WorkerState } from "../../shared/ports/engine_control.ts";
import { readBody } from "../../shared/http/read_body.ts";
import { UpdateEngines } from "../../shared/schemas/engines.ts";
import type { EngineState } from "../../shared/services/engines/engine_updates.ts";
import type { HandlerServices } from "../handler_services.ts";

/** How long all workers may take to say how they are. */
const STATE_TIMEOUT_MS = 10_000;

/** The engines endpoints, to be mounted at `/engines`. */
export function createEnginesApp(services: HandlerServices): Hono {
  const app = new Hono();
  app.get("/", async (context) => {
    const signal = AbortSignal.timeout(STATE_TIMEOUT_MS);
    const states = await Promise.all(services.models.list().map((model) => services.engines.stateOf(model, signal)));
    return context.json({ models: states.map(stateBody) });
  });
  app.post("/update", (context) => update(context, services));
  return app;
}

async function update(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, UpdateEngines, services);
  const { action, model: name, new_task_budget: budget, ...body } = request;
  const model = services.models.named(name);
  if (budget !== undefined) services.engines.setBudget(model, budget);
  // A trainer that hangs up does not undo what the workers have begun: they are asked to the end.
  const report = await services.engines.act(model, action, body, new AbortController().signal);
  if (report.ok) return context.json(report);
  const failed = report.results.filter((result) => !result.ok).length;
  throw new VerbatimError("engine_failed", `${failed} of ${report.results.length} workers failed: ${action}`, {
    details: { ...report },
  });
}

function stateBody(state: EngineState): Record<string, unknown> {
  return {
    model: state.model,
    paused: state.paused,
    queue: { running: state.running, waiting: state.waiting, limit: state.limit },
    new_task_budget: state.newTaskBudget,
    told_version: state.toldVersion,
    workers: state.workers.map((worker) => workerBody(worker, state.toldVersion)),
    reason: state.reason,
  };
}

function workerBody(worker: WorkerState, toldVersion: string | null): Record<string, unknown> {
  return {
    url: worker.url,
    reachable: worker.reachable,
    reason: worker.reason,
    healthy: worker.healthy,
    model_path: worker.modelPath,
    weight_version: worker.weightVersion,
    // A worker that missed an update goes on with its old weights, and says so.
    up_to_date: toldVersion === null || worker.weightVersion === null ? null : worker.weightVersion === toldVersion,
    running: worker.running,
    queued: worker.queued,
    circuit: worker.circuit,
    in_flight: worker.inFlight,
  };
}
