/** The environment as one schema: names, defaults and bounds. It does not read anything. */

import { z } from "zod";
import { TextBackends } from "./text_backends.ts";

function number(): z.ZodCoercedNumber {
  return z.coerce.number({ error: (issue) => issue.code === "invalid_type" ? "must be a number" : undefined });
}

const flag = z.stringbool({ truthy: ["1", "true", "on", "yes"], falsy: ["0", "false", "off", "no"] });
const seconds = number().positive().max(1e9);
const count = number().int().positive().max(Number.MAX_SAFE_INTEGER);
/** Workers are often written as `host:port`. */
const address = z.string().transform((text) => /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`).pipe(
  z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/+$/, "")),
);
const url = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/+$/, ""));

function list<T extends z.ZodType<unknown, string>>(
  item: T,
): z.ZodPipe<z.ZodTransform<string[], string>, z.ZodArray<T>> {
  return z.transform((text: string) => text.split(",").map((part) => part.trim()).filter((part) => part !== "")).pipe(
    z.array(item),
  );
}

/** Every variable Verbatim reads. A missing one takes its default; a bad one stops the start. */
export const Environment = z.object({
  HOST: z.string().min(1).default("127.0.0.1"),
  PORT: number().int().min(0).max(65535).default(8787),
  PUBLIC_URL: url.optional(),
  VERBATIM_ADMIN_KEY: z.string().min(1).optional(),
  MAX_BODY_BYTES: count.default(64 * 1024 * 1024),
  SGLANG_ROUTER_URL: url.optional(),
  ROLLOUT_EXTERNAL_ENGINE_ADDRS: list(address).optional(),
  SGLANG_API_KEY: z.string().min(1).optional(),
  ENGINE_RETRY_S: number().min(0).max(86400).default(10),
  ENGINE_IDLE_TIMEOUT_S: seconds.default(900),
  /** Generations at the engine at once, and calls that may wait for their turn. Engines queue too: these bound memory. */
  ENGINE_MAX_CONCURRENCY: count.default(4096),
  ENGINE_MAX_QUEUE: number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(16384),
  MODEL_NAME: z.string().min(1).optional(),
  TOKENIZER: z.string().min(1).optional(),
  CHAT_TEMPLATE: z.string().min(1).optional(),
  TOOL_CALL_PARSER: z.string().min(1).default("auto"),
  REASONING_PARSER: z.string().min(1).default("auto"),
  MAX_CONTEXT_LEN: count.default(131072),
  OPENAI_BACKENDS: TextBackends.default([]),
  TEACHER_SGLANG_URL: url.optional(),
  TEACHER_API_KEY: z.string().min(1).optional(),
  TEACHER_TOKENIZER: z.string().min(1).optional(),
  TEACHER_FORMAT: z.string().min(1).default("auto"),
  TEACHER_TEMPERATURE: number().min(0).max(2).default(0),
  TEACHER_TOP_P: number().gt(0).max(1).default(1),
  DISTILL_TOPK: number().int().min(0).max(1024).default(20),
  DISTILL_TEACHER_CONCURRENCY: number().int().min(1).max(1024).default(4),
  DISTILL_TEACHER_RETRIES: number().int().min(0).max(100).default(5),
  /** Seconds. */
  DISTILL_TEACHER_BASE_DELAY: number().min(0).max(3600).default(2),
  STORE: z.enum(["kv", "postgres", "memory"]).default("kv"),
  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, "must be a postgres:// URL").optional(),
  KV_PATH: z.string().min(1).optional(),
  BLOB_LIMIT_BYTES: count.default(4 * 1024 * 1024),
  BLOB_PATH: z.string().min(1).transform((path) => path.replace(/(?<=.)\/+$/, "")).optional(),
  BLOB_S3_URL: url.refine((text) => new URL(text).pathname.length > 1, "must name a bucket: https://host/bucket")
    .optional(),
  BLOB_S3_REGION: z.string().min(1).default("us-east-1"),
  BLOB_S3_ACCESS_KEY_ID: z.string().min(1).optional(),
  BLOB_S3_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  TURN_CACHE_BYTES: count.default(512 * 1024 * 1024),
  TASK_TTL_S: seconds.default(86400),
  TASK_AUTOCREATE: flag.default(false),
  PASSTHROUGH_KEYS: list(z.string().min(1)).default([]),
  LOG_LEVEL: z.enum(["debug", "info", "warn", "error"]).default("info"),
});
/** The environment, read and checked. */
export type Environment = z.output<typeof Environment>;
