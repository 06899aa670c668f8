/** Command-line flags of the engine as a process. It reads no environment and starts nothing. */

import { parseArgs } from "node:util";
import { VerbatimError } from "../core/errors.ts";
import { DEMO_SCRIPTS } from "./demo_scripts.ts";
import type { EmbeddedEngineOptions } from "./engine_options.ts";
import type { ExpertShape } from "./routed_experts.ts";

/** What the flags say. */
export interface EngineFlags {
  readonly hostname: string;
  readonly port: number;
  /** Folder, URL or hub id of a tokenizer; null: Qwen3's. */
  readonly tokenizer: string | null;
  readonly engine: Omit<EmbeddedEngineOptions, "tokenizer">;
}

/** Printed for `--help`. */
export const ENGINE_USAGE = `The embedded engine, an SGLang worker in miniature. Prints its URL once it listens.

  --host HOST                 default 127.0.0.1
  --port PORT                 default 30000; 0 takes a free one
  --tokenizer PLACE           folder, URL or hub id of a tokenizer; default Qwen3's
  --model NAME                default embedded
  --context TOKENS            default 131072
  --script NAME               ${Object.keys(DEMO_SCRIPTS).join(", ")}; default none
  --seed N                    another model; default 0
  --incremental               frames of a stream carry deltas
  --stream-interval TOKENS    tokens a frame; default 1
  --no-flat-top-logprobs      the flat form of top logprobs is not known, as behind a router
  --api-key KEY               default none
  --weight-version VERSION    default "default"
  --first-token-delay-ms MS   default 0
  --token-delay-ms MS         default 0
  --experts LxKxN             a mixture of experts: L layers choose K of N each, and say which where they are asked
  --top-p-token-ids           says which ids a token was chosen from, where it is asked (custom_params)
  --draft-tokens N            counters as speculative decoding would have them
  --null-reply TOKENS         no model: every reply is this long
`;

/** Reads the flags; null for `--help`. A flag that is unknown or has a bad value is `invalid_request`. */
export function parseEngineFlags(args: readonly string[]): EngineFlags | null {
  const values = read(args);
  if (values.help === true) return null;
  const script = values.script === undefined ? undefined : DEMO_SCRIPTS[values.script];
  if (values.script !== undefined && script === undefined) {
    throw invalid(`--script ${values.script} is none of ${Object.keys(DEMO_SCRIPTS).join(", ")}.`);
  }
  const draftTokens = number(values, "draft-tokens", { least: 1 });
  const nullReplyTokens = number(values, "null-reply", { least: 1 });
  return {
    hostname: values.host ?? "127.0.0.1",
    port: number(values, "port", { most: 65535 }) ?? 30000,
    tokenizer: values.tokenizer ?? null,
    engine: {
      modelName: values.model ?? "embedded",
      maxContextTokens: number(values, "context", { least: 2 }) ?? 131072,
      seed: number(values, "seed", {}) ?? 0,
      incremental: values.incremental ?? false,
      streamInterval: number(values, "stream-interval", { least: 1 }) ?? 1,
      firstTokenDelayMs: number(values, "first-token-delay-ms", {}) ?? 0,
      tokenDelayMs: number(values, "token-delay-ms", {}) ?? 0,
      nullReplyTokens,
      ...(values["top-p-token-ids"] === true ? { topPTokenIds: true } : {}),
      ...(values.experts === undefined ? {} : { experts: expertShape(values.experts) }),
      ...(draftTokens === null ? {} : { draftTokens }),
      flatTopLogprobs: values["no-flat-top-logprobs"] !== true,
      ...(script === undefined ? {} : { script }),
      ...(values["api-key"] === undefined ? {} : { apiKey: values["api-key"] }),
      ...(values["weight-version"] === undefined ? {} : { weightVersion: values["weight-version"] }),
    },
  };
}

type Values = ReturnType<typeof read>;

function read(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: "boolean" },
        host: { type: "string" },
        port: { type: "string" },
        tokenizer: { type: "string" },
        model: { type: "string" },
        context: { type: "string" },
        script: { type: "string" },
        seed: { type: "string" },
        incremental: { type: "boolean" },
        "stream-interval": { type: "string" },
        "no-flat-top-logprobs": { type: "boolean" },
        "api-key": { type: "string" },
        "weight-version": { type: "string" },
        "first-token-delay-ms": { type: "string" },
        "token-delay-ms": { type: "string" },
        experts: { type: "string" },
        "top-p-token-ids": { type: "boolean" },
        "draft-tokens": { type: "string" },
        "null-reply": { type: "string" },
      },
    }).values;
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error));
  }
}

function expertShape(text: string): ExpertShape {
  const [layers = 0, topK = 0, experts = 0] = (/^(\d{1,4})x(\d{1,4})x(\d{1,6})$/.exec(text) ?? []).slice(1).map(Number);
  if (layers < 1 || topK < 1 || experts < topK) throw invalid(`--experts ${text} is not LxKxN with 1 <= K <= N.`);
  return { layers, topK, experts };
}

function number(
  values: Values,
  name:
    | "port"
    | "context"
    | "seed"
    | "stream-interval"
    | "first-token-delay-ms"
    | "token-delay-ms"
    | "null-reply"
    | "draft-tokens",
  { least = 0, most = Number.MAX_SAFE_INTEGER }: { least?: number; most?: number },
): number | null {
  const text = values[name];
  if (text === undefined) return null;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw invalid(`--${name} ${text} is not a whole number in [${least}, ${most}].`);
}

function invalid(message: string): VerbatimError {
  return new VerbatimError("invalid_request", message);
}
