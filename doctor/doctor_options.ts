/** The doctor's command line, over the variables that `serve` reads. */

import { parseArgs } from "node:util";
import { VerbatimError } from "../shared/core/errors.ts";
import type { Environment } from "../shared/schemas/environment.ts";

export const DOCTOR_USAGE = `deno task doctor [--tokenizer PLACE] [--engine URL] [options]

Loads a tokenizer and its chat template, names family and parsers, tries everything out that a gateway relies on, and
with an engine compares token ids and logprobs. Exits with 1 where anything fails. What is not given is read from the
variables of \`deno task serve\`.

  --tokenizer PLACE          a folder, a URL or a hub id (TOKENIZER; else where the engine says its own is)
  --chat-template FILE       instead of the tokenizer's own (CHAT_TEMPLATE)
  --tool-call-parser NAME    a parser's name, auto or none (TOOL_CALL_PARSER)
  --reasoning-parser NAME    a parser's name, auto or none (REASONING_PARSER)
  --engine URL               an SGLang worker or router (SGLANG_ROUTER_URL); its key is SGLANG_API_KEY
  --help
`;

/** What to look at. */
export interface DoctorOptions {
  readonly tokenizer: string | null;
  readonly chatTemplate: string | null;
  readonly engine: string | null;
  readonly apiKey: string | null;
  /** `auto`, a name, or null for none. */
  readonly toolCallParser: string | null;
  readonly reasoningParser: string | null;
}

/** The options, or null where help is asked for. A flag that is unknown or bad is `invalid_request`. */
export function doctorOptions(
  args: readonly string[],
  given: Partial<Record<keyof Environment, string>>,
): DoctorOptions | null {
  const text = { type: "string" } as const;
  let values;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        tokenizer: text,
        "chat-template": text,
        "tool-call-parser": text,
        "reasoning-parser": text,
        engine: text,
        help: { type: "boolean" },
      },
    }));
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new VerbatimError("invalid_request", `${words}\n\n${DOCTOR_USAGE}`, { cause });
  }
  if (values.help === true) return null;
  const engine = values.engine ?? given.SGLANG_ROUTER_URL ?? null;
  if (engine !== null && !/^https?:\/\//.test(engine)) {
    throw new VerbatimError("invalid_request", `The engine ${engine} is no http: or https: URL.`);
  }
  const parser = (name: string | undefined) => name === "none" ? null : name ?? "auto";
  return {
    tokenizer: values.tokenizer ?? given.TOKENIZER ?? null,
    chatTemplate: values["chat-template"] ?? given.CHAT_TEMPLATE ?? null,
    engine: engine?.replace(/\/+$/, "") ?? null,
    apiKey: given.SGLANG_API_KEY ?? null,
    toolCallParser: parser(values["tool-call-parser"] ?? given.TOOL_CALL_PARSER),
    reasoningParser: parser(values["reasoning-parser"] ?? given.REASONING_PARSER),
  };
}
