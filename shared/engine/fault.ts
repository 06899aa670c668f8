/** Faults as data: what can go wrong with a request, and when. It does not carry them out. */

import * as z from "zod";

const tokens = z.number().int().min(0);
const ms = z.number().min(0);

/** One thing that goes wrong. README.md has them in a table. */
export const Fault = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("delay"), firstTokenMs: ms.optional(), tokenMs: ms.optional() }),
  /** Stops for good after so many tokens, until aborted. */
  z.strictObject({ kind: z.literal("hang"), afterTokens: tokens }),
  /** The connection breaks once so many tokens were sent (a whole answer: after half of its bytes). */
  z.strictObject({ kind: z.literal("cut"), afterTokens: tokens }),
  z.strictObject({
    kind: z.literal("abort"),
    /** Who aborts: the request check, the scheduler, a user, or a user while the request is queued. */
    by: z.enum(["validation", "scheduler", "user", "queue"]),
    status: z.union([z.literal(400), z.literal(500), z.literal(503)]).optional(),
    message: z.string().optional(),
    afterTokens: tokens.optional(),
  }),
  z.strictObject({
    kind: z.literal("http"),
    status: z.number().int().min(200).max(599),
    body: z.string().optional(),
    contentType: z.string().optional(),
    headers: z.record(z.string(), z.string()).optional(),
  }),
  /** Output logprobs: left out, one too few, or one too many. */
  z.strictObject({ kind: z.literal("logprobs"), problem: z.enum(["missing", "short", "long"]) }),
  /** The output logprob at a position; `"NaN"` is written as the bare word, which is not JSON. */
  z.strictObject({ kind: z.literal("logprob"), at: tokens, value: z.union([z.null(), z.number(), z.literal("NaN")]) }),
  /** The output id at a position; with `everywhere` also in its logprob entry. */
  z.strictObject({
    kind: z.literal("output_id"),
    at: tokens,
    id: z.number().int(),
    everywhere: z.boolean().optional(),
  }),
  z.strictObject({
    kind: z.literal("input_logprobs"),
    problem: z.enum(["missing", "short", "shifted", "null", "wrong_id"]),
  }),
  /** Fields of `meta_info` that are left out. */
  z.strictObject({ kind: z.literal("meta"), drop: z.array(z.string()) }),
  /** Survives its client: a disconnect aborts nothing, and the request runs until aborted by id. */
  z.strictObject({ kind: z.literal("zombie"), afterTokens: tokens.optional() }),
  /** The first so many aborts are missed; the one that is heard takes effect late. */
  z.strictObject({ kind: z.literal("deaf"), aborts: z.number().int().min(0).optional(), delayMs: ms.optional() }),
  /** The server dies after so many tokens. */
  z.strictObject({ kind: z.literal("die"), afterTokens: tokens }),
]);
export type Fault = z.infer<typeof Fault>;

/** A fault and the requests it hits. All conditions must hold; without any, every request is hit. */
export const FaultRule = z.strictObject({
  when: z.strictObject({
    ridPrefix: z.string().optional(),
    /** Text that the last 512 ids of the prompt contain. */
    promptTail: z.string().optional(),
    stream: z.boolean().optional(),
    /** Whether input logprobs are asked for. */
    scoring: z.boolean().optional(),
    /** Only the nth request that meets the other conditions, from 1. */
    nth: z.number().int().min(1).optional(),
    /** At most so many requests. */
    times: z.number().int().min(1).optional(),
  }).optional(),
  fault: Fault,
});
export type FaultRule = z.infer<typeof FaultRule>;
