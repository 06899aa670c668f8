/** The composition for Deno itself: on one machine, self-hosted, or on Deno Deploy. State in Deno KV or Postgres. */

import { createHfTokenizer } from "./adapters/tokenizer/hf_tokenizer.ts";
import { createJsonLogger } from "./adapters/json_logger.ts";
import { createMemoryStore } from "./adapters/memory_store.ts";
import { createPrometheusMetrics } from "./adapters/prometheus_metrics.ts";
import { createRandomIds } from "./adapters/random_ids.ts";
import { createTrackedBackground } from "./adapters/tracked_background.ts";
import { loadTokenizerFiles } from "./adapters/tokenizer/load_tokenizer_files.ts";
import { migratePostgres } from "./adapters/postgres/migrate_postgres.ts";
import { openPostgresStore } from "./adapters/postgres/postgres_store.ts";
import { openDenoKvStore } from "./adapters/kv/deno_kv_store.ts";
import { systemClock } from "./adapters/system_clock.ts";
import { composeBlobs } from "./compose_blobs.ts";
import { composeModel, tokenizerLocation } from "./compose_model.ts";
import { composeTeacher } from "./compose_teacher.ts";
import { composeTextModels } from "./compose_text_models.ts";
import { type ComposedServices, composeServices, databaseUrl, endWork } from "./compose_services.ts";
import { VerbatimError } from "./core/errors.ts";
import type { Clock } from "./ports/clock.ts";
import type { Logger } from "./ports/logger.ts";
import type { TaskStore } from "./ports/task_store.ts";
import type { Tokenizer } from "./ports/tokenizer.ts";
import type { Environment } from "./schemas/environment.ts";

/** A running composition. */
export interface Composition {
  readonly services: ComposedServices;
  /** Ends background work, writes what is pending, releases store and workers. */
  close(): Promise<void>;
}

/** Parts that are made already (development and tests). */
export interface ComposeDenoParts {
  readonly tokenizer?: Tokenizer;
  readonly logger?: Logger;
  readonly clock?: Clock;
}

/** Expired tasks of stores without expiry of their own, and removals that were cut short, are looked for this often. */
const SWEEP_MS = 3_600_000;

/** Reads, connects and checks everything; what is missing or broken stops the start with the variable to set. */
export async function composeDeno(environment: Environment, parts: ComposeDenoParts = {}): Promise<Composition> {
  const clock = parts.clock ?? systemClock;
  const ids = createRandomIds(clock);
  const logger = parts.logger ?? createJsonLogger({
    level: environment.LOG_LEVEL,
    now: () => clock.now(),
    write: (line) => Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`)),
  });
  const background = createTrackedBackground(logger);
  const files = parts.tokenizer === undefined ? await loadTokenizerFiles(await tokenizerLocation(environment)) : null;
  const tokenizer = parts.tokenizer ?? createHfTokenizer(files!);
  const readTextFile = (path: string) => Deno.readTextFile(path);
  const model = await composeModel(environment, { tokenizer, files, readTextFile, clock, ids, logger, background });
  const teacher = await composeTeacher(environment, {
    tokenizer,
    student: files,
    renderer: model.renderer,
    clock,
    ids,
    logger,
    background,
  });
  const outside = composeBlobs(environment, clock);
  const store = await openStore(environment, clock, logger);
  const services = composeServices({
    store,
    outside,
    models: [model],
    textModels: await composeTextModels(environment, { clock, ids }),
    teacher: teacher?.scorer ?? null,
    labeller: teacher?.labeller ?? null,
    clock,
    ids,
    logger,
    background,
    createMetrics: createPrometheusMetrics,
  }, environment);
  const stopSweeping = new AbortController();
  background.run("sweep expired tasks", sweepUntil(services, stopSweeping.signal));
  return {
    services,
    async close() {
      stopSweeping.abort();
      await endWork(services);
      await store.close();
      tokenizer.close();
    },
  };
}

async function openStore(environment: Environment, clock: Clock, logger: Logger): Promise<TaskStore> {
  switch (environment.STORE) {
    case "memory":
      return createMemoryStore();
    case "postgres": {
      const url = databaseUrl(environment);
      const applied = await migratePostgres(url);
      if (applied.length > 0) logger.info("The database was migrated", { versions: applied });
      return openPostgresStore({ url, clock, logger });
    }
    case "kv": {
      const path = environment.KV_PATH;
      if (path === undefined) {
        logger.warn("KV_PATH is not set: tasks are kept in Deno's default database, which goes with Deno's cache");
      }
      const isLocal = path === undefined || !/^https?:/.test(path);
      return openDenoKvStore({
        kv: await openKv(path),
        clock,
        logger,
        // A local database takes more checks an atomic write than a KV Connect server, and groups more commits in one.
        ...(isLocal ? { maxChecks: 40 } : {}),
      });
    }
  }
}

async function openKv(path: string | undefined): Promise<Deno.Kv> {
  try {
    return await Deno.openKv(path);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new VerbatimError("not_ready", `The KV database can't be opened (KV_PATH ${path ?? "not set"}): ${reason}`, {
      cause,
    });
  }
}

async function sweepUntil(services: ComposedServices, stop: AbortSignal): Promise<void> {
  const { store, blobs, clock, logger } = services;
  while (!stop.aborted) {
    await store.sweep(clock.now());
    await blobs.sweepOutside(clock.now()).catch((cause) => {
      logger.warn("Expired blobs could not be removed yet", { cause: String(cause) });
    });
    await clock.sleep(SWEEP_MS, stop).catch(() => {});
  }
}
