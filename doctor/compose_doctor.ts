/** The doctor's composition: tokenizer files and engine become what is examined. */

import { createHfTokenizer } from "../shared/adapters/tokenizer/hf_tokenizer.ts";
import { createJsonLogger } from "../shared/adapters/json_logger.ts";
import { loadTokenizerFiles } from "../shared/adapters/tokenizer/load_tokenizer_files.ts";
import { createSglangEngine } from "../shared/adapters/sglang/sglang_engine.ts";
import { systemClock } from "../shared/adapters/system_clock.ts";
import { createTrackedBackground } from "../shared/adapters/tracked_background.ts";
import { VerbatimError } from "../shared/core/errors.ts";
import type { Engine } from "../shared/ports/engine.ts";
import type { DoctorOptions } from "./doctor_options.ts";
import type { DoctorEngine } from "./engine_findings.ts";
import type { Patient } from "./examine.ts";

const CALL_MS = 30_000;

/** Loads everything. What can't be loaded is an error with what to set. */
export async function composeDoctor(options: DoctorOptions): Promise<Patient & { close(): void }> {
  const place = options.tokenizer ?? await placeByEngine(options);
  const files = await loadTokenizerFiles(place);
  const chatTemplate = options.chatTemplate === null
    ? files.chatTemplate
    : await Deno.readTextFile(options.chatTemplate).catch((cause: unknown) => {
      throw new VerbatimError("not_ready", `The chat template ${options.chatTemplate} can't be read.`, { cause });
    });
  const tokenizer = createHfTokenizer(files, { worker: "none" });
  return {
    tokenizer,
    renderer: {
      toolCallParser: options.toolCallParser,
      reasoningParser: options.reasoningParser,
      stopTokenIds: files.stopTokenIds,
      ...(chatTemplate === null ? {} : { chatTemplate }),
    },
    engine: options.engine === null ? null : doctorEngine(options, tokenizer.vocabSize),
    close: () => tokenizer.close(),
  };
}

/** An engine by its address, for examinations. */
export function doctorEngine(options: Pick<DoctorOptions, "engine" | "apiKey">, vocabSize: number): DoctorEngine {
  const url = options.engine ?? "";
  return {
    engine: engineAt(options, vocabSize),
    async tokenize(body) {
      const response = await fetch(`${url}/tokenize`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(options.apiKey === null ? {} : { authorization: `Bearer ${options.apiKey}` }),
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(CALL_MS),
      });
      if (response.status === 404 || (response.status === 400 && "messages" in body)) {
        await response.body?.cancel();
        return null;
      }
      const answer: unknown = await response.json();
      if (!response.ok || typeof answer !== "object" || answer === null || !("tokens" in answer)) {
        throw new VerbatimError("not_ready", `${url}/tokenize answers ${response.status} ${JSON.stringify(answer)}.`);
      }
      const { tokens } = answer;
      if (Array.isArray(tokens) && tokens.every((id) => typeof id === "number")) return tokens;
      throw new VerbatimError("not_ready", `${url}/tokenize gives no list of token ids.`);
    },
  };
}

function engineAt({ engine, apiKey }: Pick<DoctorOptions, "engine" | "apiKey">, vocabSize: number): Engine {
  const logger = createJsonLogger({
    level: "error",
    now: () => systemClock.now(),
    write: (line) => Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`)),
  });
  return createSglangEngine({
    url: engine ?? "",
    apiKey: apiKey ?? undefined,
    vocabSize,
    retryMs: 0,
    idleTimeoutMs: CALL_MS,
    clock: systemClock,
    logger,
    background: createTrackedBackground(logger),
    random: Math.random,
  });
}

async function placeByEngine(options: DoctorOptions): Promise<string> {
  const wanted = "name the tokenizer (--tokenizer or TOKENIZER)";
  if (options.engine === null) {
    throw new VerbatimError("not_ready", `There is nothing to examine: ${wanted}, or an engine (--engine).`);
  }
  const info = await engineAt(options, Number.MAX_SAFE_INTEGER).info(AbortSignal.timeout(CALL_MS)).catch(
    (cause: unknown) => {
      throw new VerbatimError("not_ready", `The engine at ${options.engine} does not answer: ${wanted}.`, { cause });
    },
  );
  if (info.tokenizerPath !== null) return info.tokenizerPath;
  throw new VerbatimError(
    "not_ready",
    `The engine at ${options.engine} does not say where its tokenizer is: ${wanted}.`,
  );
}
