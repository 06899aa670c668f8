/**
 * The composition for Supabase's edge runtime and hosts like it: no Deno KV, no workers of our own, no native packages.
 * State in Postgres; its tables come from supabase/migrations by the host's own tools.
 */

import { createHfTokenizer } from "./adapters/tokenizer/hf_tokenizer.ts";
import { createJsonLogger } from "./adapters/json_logger.ts";
import { loadTokenizerFiles } from "./adapters/tokenizer/load_tokenizer_files.ts";
import { openPostgresStore } from "./adapters/postgres/postgres_store.ts";
import { createPrometheusMetrics } from "./adapters/prometheus_metrics.ts";
import { createRandomIds } from "./adapters/random_ids.ts";
import { readEnvironment } from "./adapters/read_environment.ts";
import { systemClock } from "./adapters/system_clock.ts";
import { createTrackedBackground } from "./adapters/tracked_background.ts";
import { composeBlobs } from "./compose_blobs.ts";
import { composeModel } from "./compose_model.ts";
import { composeTeacher } from "./compose_teacher.ts";
import { composeTextModels } from "./compose_text_models.ts";
import { type ComposedServices, composeServices, databaseUrl } from "./compose_services.ts";
import { VerbatimError } from "./core/errors.ts";

/** The hook by which an edge host keeps an isolate alive for background work. */
interface EdgeHost {
  readonly EdgeRuntime?: { waitUntil(work: Promise<unknown>): void };
}

/** Reads the environment and builds the services; nothing happens before the call. */
export async function composeSupabase(): Promise<ComposedServices> {
  const environment = readEnvironment();
  if (environment.STORE !== "postgres") {
    throw new VerbatimError(
      "not_ready",
      "This host has no Deno KV and keeps no memory between calls: set STORE=postgres",
    );
  }
  if (environment.TOKENIZER === undefined) {
    throw new VerbatimError("not_ready", "TOKENIZER is not set: give the URL of its folder");
  }
  if (environment.VERBATIM_ADMIN_KEY === undefined) {
    throw new VerbatimError("not_ready", "VERBATIM_ADMIN_KEY must be set on this host");
  }
  if (environment.BLOB_PATH !== undefined) {
    throw new VerbatimError("not_ready", "BLOB_PATH is set, and this host keeps no files: set BLOB_S3_URL");
  }
  const clock = systemClock;
  const logger = createJsonLogger({
    level: environment.LOG_LEVEL,
    now: () => clock.now(),
    write: (line) => Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`)),
  });
  const host: typeof globalThis & EdgeHost = globalThis;
  const background = createTrackedBackground(logger, (work) => host.EdgeRuntime?.waitUntil(work));
  const files = await loadTokenizerFiles(environment.TOKENIZER);
  const tokenizer = createHfTokenizer(files, { worker: "none" });
  const store = openPostgresStore({ url: databaseUrl(environment), clock, logger });
  const ids = createRandomIds(clock);
  const model = await composeModel(environment, { tokenizer, files, clock, ids, logger, background });
  const teacher = await composeTeacher(environment, {
    tokenizer,
    student: files,
    renderer: model.renderer,
    clock,
    ids,
    logger,
    background,
  });
  const services = composeServices({
    store,
    outside: composeBlobs(environment, clock),
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
  // Isolates come and go: each looks for expired tasks once.
  background.run("sweep expired tasks", store.sweep(clock.now()));
  background.run("sweep expired blobs", services.blobs.sweepOutside(clock.now()));
  return services;
}
