/** Force-decoding a sampled sequence finds the sampled logprobs again, bit for bit, scripted or not. */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { qwen3Tokenizer } from "../../tests/fixtures/qwen3_tokenizer.ts";
import type { Tokenizer } from "../ports/tokenizer.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./embedded_engine.ts";
import type { Script } from "./script.ts";

interface Reply {
  readonly output_ids: number[];
  readonly meta_info: {
    readonly output_token_logprobs: [number, number, null][];
    readonly input_token_logprobs: [number | null, number, null][];
  };
}

const script: Script = {
  sharpness: 4,
  rules: [
    { match: "weather", completions: ["<think>\nhm\n</think>\n\nLet me look.", "It rains.", "Bye."] },
    { match: /number \d+/, completions: [({ newest }) => `You said ${/\d+/.exec(newest)?.[0]}.`], retrigger: true },
  ],
};

async function generate(engine: EmbeddedEngine, body: Record<string, unknown>): Promise<Reply> {
  const response = await engine.app.request("/generate", { method: "POST", body: JSON.stringify(body) });
  assert.equal(response.status, 200);
  return await response.json();
}

async function assertForceDecodable(
  engine: EmbeddedEngine,
  prompt: number[],
  samplingParams: Record<string, unknown>,
): Promise<number[]> {
  const sampled = await generate(engine, {
    input_ids: prompt,
    return_logprob: true,
    sampling_params: { max_new_tokens: 48, ...samplingParams },
  });
  const whole = [...prompt, ...sampled.output_ids];
  const forced = await generate(engine, {
    input_ids: whole,
    return_logprob: true,
    logprob_start_len: prompt.length - 1,
    sampling_params: { max_new_tokens: 0 },
  });
  const [first, ...rest] = forced.meta_info.input_token_logprobs;
  assert.deepEqual(first, [null, prompt.at(-1), null]);
  assert.deepEqual(rest, sampled.meta_info.output_token_logprobs);
  return whole;
}

function conversation(tokenizer: Tokenizer): fc.Arbitrary<number[]> {
  const text = fc.string({ unit: "grapheme", maxLength: 12 });
  const part = fc.oneof(
    text,
    text.map((said) => `<|im_start|>user\nthe weather ${said}<|im_end|>\n<|im_start|>assistant\n`),
    fc.nat(99).map((n) => `<|im_start|>user\nnumber ${n}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n`),
    fc.constant("<|im_end|>"),
  );
  return fc.tuple(text, fc.array(part, { maxLength: 6 })).map(([head, parts]) => [
    ...tokenizer.encode("x" + head + parts.join("")),
  ]);
}

for (const [name, make] of [["bytes", () => Promise.resolve(byteTokenizer())], ["Qwen3", qwen3Tokenizer]] as const) {
  Deno.test(`force-decoding finds sampled logprobs again over ${name}`, async () => {
    const tokenizer = await make();
    const engine = createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 4096, script });
    const sampling = fc.constantFrom<Record<string, unknown>>(
      {},
      { temperature: 0 },
      { top_p: 0.9 },
      { top_k: 5, min_p: 0.05 },
      { sampling_seed: 7 },
      { ignore_eos: true },
    );
    await fc.assert(
      fc.asyncProperty(conversation(tokenizer), sampling, async (prompt, params) => {
        // A second turn on top of the first: its script state comes out of sampled ids.
        const series = await assertForceDecodable(engine, prompt, params);
        const next = tokenizer.encode("<|im_end|>\n<|im_start|>user\nand?<|im_end|>\n<|im_start|>assistant\n");
        await assertForceDecodable(engine, [...series, ...next], params);
      }),
      { numRuns: 40 },
    );
  });
}
