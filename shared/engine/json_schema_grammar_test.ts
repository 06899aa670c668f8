/** What a schema's grammar lets through is JSON of that schema, and its logprobs are those of the mask. */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import * as z from "zod";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { generate } from "../../tests/fixtures/engine_client.ts";
import { qwen3Tokenizer } from "../../tests/fixtures/qwen3_tokenizer.ts";
import { createEmbeddedEngine } from "./embedded_engine.ts";
import { jsonSchemaGrammar, UnsupportedSchema } from "./json_schema_grammar.ts";

const shape: fc.Memo<z.ZodType> = fc.memo((depth) => {
  const leaf = fc.constantFrom<z.ZodType>(
    z.string(),
    z.boolean(),
    z.null(),
    z.number(),
    z.enum(["one", "two words", 'a "quoted" one']),
    z.literal(7),
  );
  if (depth <= 1) return leaf;
  const inner = shape(depth - 1);
  const name = fc.constantFrom("a", "b c", "d", '"e"');
  return fc.oneof(
    leaf,
    fc.dictionary(name, inner, { maxKeys: 3, noNullPrototype: true }).map((properties) => z.object(properties)),
    fc.tuple(inner, fc.nat(2), fc.nat(2)).map(([item, least, more]) => z.array(item).min(least).max(least + more)),
    fc.tuple(inner, inner).map(([one, other]) => z.union([one, other])),
  );
});

for (const [name, make] of [["bytes", () => Promise.resolve(byteTokenizer())], ["Qwen3", qwen3Tokenizer]] as const) {
  Deno.test(`json_schema output over ${name} is an instance of the schema`, async () => {
    const engine = createEmbeddedEngine({ tokenizer: await make(), modelName: "m", maxContextTokens: 8192 });
    await fc.assert(
      fc.asyncProperty(shape(3), fc.constantFrom(0, 1, 2), async (schema, temperature) => {
        const reply = await generate(engine, {
          text: "say something",
          return_logprob: true,
          sampling_params: {
            max_new_tokens: 8000,
            temperature,
            json_schema: JSON.stringify(z.toJSONSchema(schema)),
            skip_special_tokens: true,
          },
        });
        assert.equal(reply.meta_info.finish_reason?.type, "stop");
        assert.equal(schema.safeParse(JSON.parse(reply.text)).success, true, reply.text);
        for (const [logprob] of reply.meta_info.output_token_logprobs!) assert.ok(Number.isFinite(logprob));
      }),
      { numRuns: 40 },
    );
  });
}

Deno.test("json_schema makes output logprobs relative to the mask", async () => {
  const engine = createEmbeddedEngine({ tokenizer: byteTokenizer(), modelName: "m", maxContextTokens: 512 });
  const reply = await generate(engine, {
    input_ids: [65],
    return_logprob: true,
    top_logprobs_num: 3,
    sampling_params: { json_schema: '{"enum":["ab","ac"]}' },
  });
  // Everything but the choice is forced; at the end there are two stop ids to choose from.
  const forced = reply.meta_info.output_token_logprobs!.map(([logprob]) => logprob === 0);
  assert.deepEqual(forced, [true, true, false, true, false]);
  const choice = reply.meta_info.output_top_logprobs![2]!;
  assert.deepEqual(choice.map(([, id]) => id).slice(0, 2).sort(), [98, 99]);
  assert.ok(Math.abs(Math.exp(choice[0]![0]) + Math.exp(choice[1]![0]) - 1) < 1e-6);
  assert.equal(choice[2]![0], null);
});

Deno.test("jsonSchemaGrammar refuses what it can't keep", () => {
  const options = { tokenizer: byteTokenizer(), words: [97] };
  for (
    const schema of [
      "{",
      "5",
      '{"type":"string","maxLength":3}',
      '{"type":"string","format":"date"}',
      '{"type":"number","minimum":3}',
      '{"allOf":[{"type":"string"}]}',
      '{"anyOf":[{"type":"string"}],"type":"string"}',
      '{"$ref":"#/$defs/a","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}}}',
      '{"$ref":"#/$defs/b"}',
      '{"type":"object","required":["x"]}',
      '{"enum":["a"],"type":"integer"}',
      '{"type":"array","prefixItems":[]}',
      '{"type":"array","minItems":3,"maxItems":2}',
    ]
  ) {
    assert.throws(() => jsonSchemaGrammar(schema, options), UnsupportedSchema, schema);
  }
});
