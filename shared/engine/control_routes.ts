/** Routes that steer the engine: aborts, pauses, weights, cache, faults. */

import { type Context, Hono } from "hono";
import * as z from "zod";
import type { EngineCore } from "./engine_core.ts";
import { FaultRule } from "./fault.ts";

const AbortBody = z.object({ rid: z.string().nullish(), abort_all: z.boolean().nullish() });
const PauseBody = z.object({ mode: z.enum(["abort", "retract", "in_place"]).nullish() });
const VersionBody = z.object({ new_version: z.string(), abort_all_requests: z.boolean().nullish() });
const WeightsBody = z.object({
  model_path: z.string(),
  load_format: z.string().nullish(),
  abort_all_requests: z.boolean().nullish(),
  weight_version: z.string().nullish(),
  keep_pause: z.boolean().nullish(),
  flush_cache: z.boolean().nullish(),
});
const FaultsBody = z.union([FaultRule, z.array(FaultRule)]);

const FLUSHED = "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting " +
  "requests, the operation will not be performed.)\n";

/** The routes. */
export function controlRoutes(core: EngineCore): Hono {
  const { scheduler } = core;
  const app = new Hono();

  app.post("/abort_request", async (context) => {
    const body = await read(context, AbortBody);
    if (body instanceof Response) return body;
    scheduler.abort({ rid: body.rid ?? "", all: body.abort_all ?? false });
    return new Response(null, { status: 200 });
  });

  app.post("/pause_generation", async (context) => {
    const body = await read(context, PauseBody);
    if (body instanceof Response) return body;
    await scheduler.pause(body.mode ?? "abort");
    return context.json({ message: "Generation paused successfully.", status: "ok" });
  });

  app.post("/continue_generation", (context) => {
    scheduler.resume();
    return context.json({ message: "Generation continued successfully.", status: "ok" });
  });

  app.post("/update_weight_version", async (context) => {
    const body = await read(context, VersionBody);
    if (body instanceof Response) return body;
    if (body.abort_all_requests ?? true) scheduler.abort({ rid: "", all: true });
    core.weightVersion = body.new_version;
    const message = `Weight version updated to ${body.new_version}`;
    return context.json({ success: true, message, new_version: body.new_version });
  });

  app.post("/update_weights_from_disk", async (context) => {
    const body = await read(context, WeightsBody);
    if (body instanceof Response) return body;
    const paused = scheduler.paused === null ? 0 : scheduler.running + scheduler.queued;
    let message = "Succeeded to update model weights.";
    const flush = body.flush_cache ?? true;
    const success = await scheduler.update({ flush, abortAll: body.abort_all_requests ?? false }, () => {
      core.loadWeights(body.model_path);
      if (typeof body.weight_version === "string") {
        core.weightVersion = body.weight_version;
        message += ` Weight version updated to ${body.weight_version}.`;
      }
    });
    if (!success) message = "Cache flush failed after updating weights";
    return context.json({ success, message, num_paused_requests: paused }, success ? 200 : 400);
  });

  app.on(["GET", "POST"], "/flush_cache", async (context) => {
    const timeoutS = Number(context.req.query("timeout") ?? 0);
    if (timeoutS > 0) {
      const waiting = new AbortController();
      await Promise.race([
        scheduler.idle(waiting.signal),
        core.sleep(timeoutS * 1000, waiting.signal).catch(() => {}),
      ]);
      waiting.abort();
    }
    return context.text(FLUSHED, scheduler.flush() ? 200 : 400);
  });

  app.post("/faults", async (context) => {
    const body = await read(context, FaultsBody);
    if (body instanceof Response) return body;
    for (const rule of [body].flat()) core.faults.add(rule);
    return context.json({ faults: core.faults.list() });
  });
  app.get("/faults", (context) => context.json({ faults: core.faults.list() }));
  app.delete("/faults", (context) => {
    core.faults.clear();
    return context.json({ faults: [] });
  });
  return app;
}

/** The body, or the answer that it does not fit. An empty body is `{}`. */
async function read<Schema extends z.ZodType>(context: Context, schema: Schema): Promise<z.infer<Schema> | Response> {
  const text = await context.req.text();
  let value: unknown;
  try {
    value = text === "" ? {} : JSON.parse(text);
  } catch {
    value = undefined;
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const message = value === undefined ? "1 validation error: JSON decode error" : z.prettifyError(parsed.error);
  return context.json({ object: "error", message, type: "Bad Request", param: null, code: 400 }, 400);
}
