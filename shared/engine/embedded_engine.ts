/** An SGLang worker in miniature: the one way to make it. README.md says what it models and where it departs. */

import { Hono } from "hono";
import { controlRoutes } from "./control_routes.ts";
import { EngineCore } from "./engine_core.ts";
import type { EmbeddedEngineOptions } from "./engine_options.ts";
import type { FaultList } from "./fault_list.ts";
import { generateRoute } from "./generate_route.ts";
import { infoRoutes } from "./info_routes.ts";

/** A worker in this process. */
export interface EmbeddedEngine {
  /** Its routes; `app.fetch(request)` serves without a socket. */
  readonly app: Hono;
  /** What is to go wrong. */
  readonly faults: FaultList;
  /** Requests that hold a slot. */
  readonly running: number;
  /** Requests that wait for a slot. */
  readonly queued: number;
  /** Model stop ids, the one that closes a turn first. */
  readonly stopIds: readonly number[];
  /** The version stamped on answers. */
  readonly weightVersion: string;
  /** Fires when the server has died: from then on `app` throws instead of answering. */
  readonly death: AbortSignal;
}

const OPEN_PATHS: ReadonlySet<string> = new Set(["/health", "/health_generate"]);

/** Makes a worker. It starts no server and holds nothing that needs closing. */
export function createEmbeddedEngine(options: EmbeddedEngineOptions): EmbeddedEngine {
  const core = new EngineCore(options);
  const app = new Hono();
  app.use(async (context, next) => {
    if (core.death.signal.aborted) throw new Error("The embedded engine is dead, as planned.");
    const { apiKey } = options;
    if (apiKey !== undefined && !OPEN_PATHS.has(context.req.path)) {
      if (context.req.header("authorization") !== `Bearer ${apiKey}`) {
        return context.json({ error: "Unauthorized" }, 401);
      }
    }
    return await next();
  });
  app.on(["POST", "PUT"], "/generate", (context) => generateRoute(context, core));
  app.route("/", controlRoutes(core));
  app.route("/", infoRoutes(core));
  app.notFound((context) => context.json({ detail: "Not Found" }, 404));
  app.onError((error, context) => {
    if (core.death.signal.aborted) throw error;
    return context.text("Internal Server Error", 500);
  });
  return {
    app,
    faults: core.faults,
    stopIds: core.stopIds,
    death: core.death.signal,
    get running() {
      return core.scheduler.running;
    },
    get queued() {
      return core.scheduler.queued;
    },
    get weightVersion() {
      return core.weightVersion;
    },
  };
}
