/** A gateway whose teacher is a second embedded engine: another model with the student's vocabulary. */

import { createEmbeddedEngine, type EmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import type { EmbeddedEngineOptions } from "../../shared/engine/engine_options.ts";
import { type ServedEngine, serveEmbeddedEngine } from "../../shared/engine/serve_embedded_engine.ts";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";
import { type Harness, type HarnessOptions, startHarness } from "./harness.ts";

/** Another model than the student, which has the seed 0. */
export const TEACHER_SEED = 7;

/** An embedded engine on loopback that is a teacher. */
export interface TeacherEngine extends AsyncDisposable {
  readonly engine: EmbeddedEngine;
  readonly served: ServedEngine;
}

/** Starts one. */
export async function startTeacher(options: Partial<EmbeddedEngineOptions> = {}): Promise<TeacherEngine> {
  const engine = createEmbeddedEngine({
    tokenizer: await qwen3Tokenizer(),
    modelName: "teacher",
    maxContextTokens: 131072,
    seed: TEACHER_SEED,
    weightVersion: "t1",
    ...options,
  });
  const served = serveEmbeddedEngine(engine);
  return { engine, served, [Symbol.asyncDispose]: () => served.close() };
}

/** A gateway with a teacher, whose retries follow each other at once. */
export interface TaughtHarness extends AsyncDisposable {
  readonly gateway: Harness;
  readonly teacher: TeacherEngine;
}

/** Starts both. */
export async function startTaught(
  options: HarnessOptions & { readonly teacher?: Partial<EmbeddedEngineOptions> } = {},
): Promise<TaughtHarness> {
  const { teacher: teacherOptions, ...rest } = options;
  const teacher = await startTeacher(teacherOptions);
  try {
    const gateway = await startHarness({
      ...rest,
      environment: {
        TEACHER_SGLANG_URL: teacher.served.url,
        DISTILL_TEACHER_BASE_DELAY: "0",
        DISTILL_TEACHER_RETRIES: "2",
        ...rest.environment,
      },
    });
    return {
      gateway,
      teacher,
      async [Symbol.asyncDispose]() {
        await gateway[Symbol.asyncDispose]();
        await teacher[Symbol.asyncDispose]();
      },
    };
  } catch (cause) {
    await teacher[Symbol.asyncDispose]();
    throw cause;
  }
}

/** A file in the safetensors format, read back by its own rules. */
export function readSafetensors(bytes: Uint8Array): {
  readonly tensors: Readonly<
    Record<string, { readonly dtype: string; readonly shape: number[]; readonly values: number[] }>
  >;
  readonly metadata: Readonly<Record<string, string>>;
} {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const { __metadata__: metadata, ...entries } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const types = { F32: Float32Array, F64: Float64Array, I32: Int32Array, U8: Uint8Array };
  const tensors: Record<string, { dtype: string; shape: number[]; values: number[] }> = {};
  for (
    const [name, entry] of Object.entries<{ dtype: keyof typeof types; shape: number[]; data_offsets: number[] }>(
      entries,
    )
  ) {
    const [start, end] = entry.data_offsets;
    const own = bytes.slice(8 + length + start!, 8 + length + end!);
    tensors[name] = { dtype: entry.dtype, shape: entry.shape, values: Array.from(new types[entry.dtype](own.buffer)) };
  }
  return { tensors, metadata };
}
