/** Backends of text, as OPENAI_BACKENDS lists them: a JSON list. It reads nothing. */

import { z } from "zod";

const perMillion = z.number().min(0);
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable");

/** One OpenAI-compatible API. */
export const TextBackend = z.strictObject({
  /** The name by which it is asked for here. */
  model: z.string().min(1),
  base_url: z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/+$/, ""))
    .default("https://api.openai.com/v1"),
  /** The variable that holds its key; absent: it wants none. */
  api_key_env: variable.optional(),
  /** The name by which it is asked for there; absent: the same. */
  upstream_model: z.string().min(1).optional(),
  /** Absent: no limit. */
  requests_per_minute: z.int().min(1).optional(),
  /** Prompt and reply together. Absent: no limit. */
  tokens_per_minute: z.int().min(1).optional(),
  max_concurrency: z.int().min(1).max(10_000).default(16),
  /** Attempts after the first. */
  retries: z.int().min(0).max(100).default(5),
  /** The first wait between attempts, seconds; it doubles. */
  base_delay_s: z.number().min(0).max(3600).default(1),
  /** Longest silence of a request, seconds. */
  timeout_s: z.number().positive().max(86_400).default(600),
  /** How it calls the token limit. Newer OpenAI models know the first name only, other APIs often the second. */
  token_limit_field: z.enum(["max_completion_tokens", "max_tokens"]).default("max_completion_tokens"),
  /** US dollars per million tokens. Absent: the table's price, where it has one. */
  price: z.strictObject({ input: perMillion, cached_input: perMillion.optional(), output: perMillion }).optional(),
});
/** One backend's settings. */
export type TextBackend = z.output<typeof TextBackend>;

/** All of them, as JSON text. */
export const TextBackends = z.string().transform((text, context) => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    context.issues.push({
      code: "custom",
      message: "must be a JSON list, or the path of a file that holds one",
      input: text,
    });
    return z.NEVER;
  }
}).pipe(
  z.array(TextBackend).refine((backends) => new Set(backends.map(({ model }) => model)).size === backends.length, {
    error: "two backends have one model name",
  }),
);
