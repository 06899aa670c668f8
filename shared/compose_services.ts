/** What every composition shares once its adapters are chosen: services from ports. It imports no adapter. */

import { VerbatimError } from "./core/errors.ts";
import type { BlobStore } from "./ports/blob_store.ts";
import type { Background } from "./ports/background.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Logger } from "./ports/logger.ts";
import type { GenerationLoad, Metrics, MetricsSources } from "./ports/metrics.ts";
import type { TaskStore } from "./ports/task_store.ts";
import type { Environment } from "./schemas/environment.ts";
import { CallsInFlight } from "./services/turns/calls_in_flight.ts";
import { CallLeases } from "./services/turns/call_leases.ts";
import { ExtrasCapture } from "./services/extras/capture_extras.ts";
import { TaskCloser } from "./services/tasks/close_task.ts";
import { EngineUpdates } from "./services/engines/engine_updates.ts";
import { TaskExporter } from "./services/exports/export_task.ts";
import { ExtrasProbe } from "./services/extras/extras_probe.ts";
import { KeptBlobs } from "./services/extras/kept_blobs.ts";
import type { TeacherLabeller } from "./services/teacher/label_turn.ts";
import { type Model, ModelCatalog, type TextModel } from "./services/model_catalog.ts";
import { TurnRecorder } from "./services/turns/record_turn.ts";
import type { Generations } from "./services/engines/resume_generation.ts";
import type { TeacherScorer } from "./services/teacher/score_with_teacher.ts";
import { TextRelay } from "./services/text_models/relay_text.ts";
import { TaskScorer } from "./services/teacher/score_tasks.ts";
import { TaskService } from "./services/tasks/task_service.ts";
import { TaskViews } from "./services/turns/task_views.ts";

/** The adapters of a composition. */
export interface Adapters {
  readonly store: TaskStore;
  /** Where large blobs go; absent or null: into the store. */
  readonly outside?: BlobStore | null;
  readonly models: readonly Model[];
  /** Absent: none is configured. */
  readonly textModels?: readonly TextModel[];
  /** Absent or null where none is configured. */
  readonly teacher?: TeacherScorer | null;
  readonly labeller?: TeacherLabeller | null;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly background: Background;
  /** Makes the counters of this process. */
  readonly createMetrics: (sources: MetricsSources) => Metrics;
}

/** Services over adapters, with the limits of the environment. */
export interface ComposedServices
  extends Omit<Adapters, "models" | "textModels" | "teacher" | "labeller" | "outside" | "createMetrics"> {
  readonly blobs: KeptBlobs;
  readonly extrasProbe: ExtrasProbe;
  readonly models: ModelCatalog;
  readonly teacher: TeacherScorer | null;
  /** Null without a teacher. */
  readonly labeller: TeacherLabeller | null;
  /** Null without a teacher. */
  readonly taskScorer: TaskScorer | null;
  readonly tasks: TaskService;
  readonly inFlight: CallsInFlight;
  readonly metrics: Metrics;
  readonly recorder: TurnRecorder;
  readonly textRelay: TextRelay;
  readonly closer: TaskCloser;
  readonly exporter: TaskExporter;
  readonly engines: EngineUpdates;
  readonly maxBytes: number;
  readonly keepAliveMs: number;
  readonly adminKey: string | undefined;
  readonly publicUrl: string | undefined;
  readonly passThroughKeys: readonly string[];
  readonly autoCreateTasks: boolean;
}

/** Clients and proxies give up on silent streams after tens of seconds; a keep-alive comes well before. */
const KEEP_ALIVE_MS = 10_000;

/** Builds the services. */
export function composeServices(
  adapters: Adapters,
  environment: Environment,
): ComposedServices {
  const { store, clock, ids, logger, background, createMetrics } = adapters;
  const { teacher = null, labeller = null, outside = null } = adapters;
  const blobs = new KeptBlobs({ store, outside, limitBytes: environment.BLOB_LIMIT_BYTES });
  const extrasProbe = new ExtrasProbe({ clock, ids });
  const models = new ModelCatalog(adapters.models, adapters.textModels);
  const tasks = new TaskService({ store, clock, ids, defaultTtlMs: environment.TASK_TTL_S * 1000 });
  const views = new TaskViews(store, { maxBytes: environment.TURN_CACHE_BYTES });
  const inFlight = new CallsInFlight();
  const metrics = createMetrics({
    callsInFlight: () => inFlight.total,
    generations: () => models.list().map(({ name, generations }) => generationLoad(name, generations)),
    teacher: () => teacher?.load ?? null,
  });
  const engines = new EngineUpdates();
  const leases = new CallLeases({ store, clock, background });
  const exporter = new TaskExporter({ store, views, models, blobs, teacher: teacher?.name ?? null });
  const taskScorer = teacher === null ? null : new TaskScorer({ scorer: teacher, exporter, tasks, store });
  return {
    ...adapters,
    blobs,
    extrasProbe,
    models,
    teacher,
    labeller,
    taskScorer,
    tasks,
    inFlight,
    metrics,
    recorder: new TurnRecorder({
      store,
      tasks,
      views,
      inFlight,
      leases,
      clock,
      ids,
      metrics,
      background,
      labeller,
      extras: new ExtrasCapture({ probe: extrasProbe, blobs, logger }),
      toldVersion: (name) => engines.toldVersion({ name }),
      onTurn(task, turn) {
        if (taskScorer === null || task.settings.score !== "per_turn") return;
        background.run("score a turn", taskScorer.scoreTurn(task, turn, new AbortController().signal));
      },
    }),
    textRelay: new TextRelay({ inFlight, clock, ids, metrics }),
    closer: new TaskCloser({ tasks, inFlight, leases, views, blobs, clock, background }),
    exporter,
    engines,
    maxBytes: environment.MAX_BODY_BYTES,
    keepAliveMs: KEEP_ALIVE_MS,
    adminKey: environment.VERBATIM_ADMIN_KEY,
    publicUrl: environment.PUBLIC_URL,
    passThroughKeys: environment.PASSTHROUGH_KEYS,
    autoCreateTasks: environment.TASK_AUTOCREATE,
  };
}

/** What operators see of a model's generations. */
function generationLoad(model: string, { gate, resumed }: Generations): GenerationLoad {
  return { model, running: gate.running, waiting: gate.waiting, paused: gate.paused, resumed };
}

/**
 * Takes no more calls and ends those that are left; resolves once all is written that is still to be written. The store
 * may be closed then.
 */
export async function endWork(
  { inFlight, background }: Pick<ComposedServices, "inFlight" | "background">,
): Promise<void> {
  await inFlight.close(new VerbatimError("not_ready", "The server is stopping", { retryAfterS: 1 }));
  await background.idle();
}

/** Refuses what is only safe on loopback, where the server can be reached from elsewhere. */
export function assertSafeListener(environment: Environment): void {
  if (isLoopback(environment.HOST)) return;
  if (environment.VERBATIM_ADMIN_KEY === undefined) {
    throw new VerbatimError(
      "not_ready",
      `Cannot listen on ${environment.HOST} without VERBATIM_ADMIN_KEY: set it, or listen on 127.0.0.1`,
    );
  }
  if (environment.TASK_AUTOCREATE) {
    throw new VerbatimError(
      "not_ready",
      `Cannot listen on ${environment.HOST} with TASK_AUTOCREATE: any key would open a task`,
    );
  }
}

/** The database of STORE=postgres. */
export function databaseUrl(environment: Environment): string {
  if (environment.DATABASE_URL !== undefined) return environment.DATABASE_URL;
  throw new VerbatimError("not_ready", "STORE is postgres and DATABASE_URL is not set");
}

/** Whether an address is this machine's own. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
