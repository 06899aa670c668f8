/** What is scripted at a position follows from the ids before it. */

import assert from "node:assert/strict";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { generate } from "../../tests/fixtures/engine_client.ts";
import { createEmbeddedEngine } from "./embedded_engine.ts";
import { PrefixState } from "./prefix_state.ts";
import { CompiledScript, type Script } from "./script.ts";

const tokenizer = byteTokenizer();
const encode = (text: string): Uint32Array => tokenizer.encode(text);
const marks = {
  stopIds: new Set([258]),
  generationPrompt: encode("<|im_start|>assistant\n"),
  suffixes: [encode("<think>\n\n</think>\n\n"), encode("<think>\n")],
};

/** What the script goes on with after this text, up to its stop token; null where nothing is scripted. */
function continuation(script: Script, text: string): string | null {
  const compiled = new CompiledScript(script, { tokenizer, stopId: 258 });
  const state = new PrefixState(marks, { script: compiled, capacity: 0 });
  for (const id of encode(text)) state.push(id);
  const ids: number[] = [];
  for (let next = state.scripted(); next !== null && ids.length < 1000; next = state.scripted()) {
    ids.push(next.id);
    state.push(next.id);
  }
  return ids.length === 0 ? null : tokenizer.decode(ids);
}

const USER = "<|im_start|>user\n";
const ASSISTANT = "<|im_start|>assistant\n";
const END = "<|im_end|>\n";

Deno.test("CompiledScript says its completions in turn, then nothing", () => {
  const script: Script = { rules: [{ match: "fish", completions: ["one", "two"] }] };
  let text = `${USER}fish${END}${ASSISTANT}`;
  assert.equal(continuation(script, text), "one<|im_end|>");
  text += `one${END}${USER}on${END}${ASSISTANT}`;
  assert.equal(continuation(script, text), "two<|im_end|>");
  text += `something else${END}${USER}on${END}${ASSISTANT}`;
  assert.equal(continuation(script, text), null);
});

Deno.test("CompiledScript does not match what the model itself said", () => {
  const script: Script = { rules: [{ match: "fish", completions: ["one"] }] };
  assert.equal(continuation(script, `${USER}a${END}${ASSISTANT}fish${END}${USER}b${END}${ASSISTANT}`), null);
  assert.equal(continuation(script, `${USER}a${END}${ASSISTANT}`), null);
});

Deno.test("CompiledScript goes on in the middle of a reply and is silent after a departure", () => {
  const script: Script = { rules: [{ match: "fish", completions: ["one two"] }] };
  const prompt = `${USER}fish${END}${ASSISTANT}`;
  assert.equal(continuation(script, `${prompt}one`), " two<|im_end|>");
  assert.equal(continuation(script, `${prompt}onx`), null);
  assert.equal(continuation(script, `${prompt}one two<|im_end|>`), null);
});

Deno.test("CompiledScript skips a reasoning block that a template put after the generation prompt", () => {
  const prompt = `${USER}fish${END}${ASSISTANT}`;
  const plain: Script = { rules: [{ match: "fish", completions: ["one"] }] };
  assert.equal(continuation(plain, `${prompt}<think>\n\n</think>\n\n`), "one<|im_end|>");
  assert.equal(continuation(plain, `${prompt}<think>\n`), "one<|im_end|>");
  const thinking: Script = { rules: [{ match: "fish", completions: ["<think>\nhm</think>one"] }] };
  assert.equal(continuation(thinking, `${prompt}<think>\n`), "hm</think>one<|im_end|>");
  assert.equal(continuation(thinking, prompt), "<think>\nhm</think>one<|im_end|>");
});

Deno.test("CompiledScript lets the rule speak that was triggered last, the earlier of two at once", () => {
  const script: Script = {
    rules: [
      { match: "fish", completions: ["f1", "f2", "f3"] },
      { match: /fis/, completions: ["never"] },
      { match: /err(or)?/g, completions: ["sorry"], retrigger: true },
    ],
  };
  let text = `${USER}fish${END}${ASSISTANT}`;
  assert.equal(continuation(script, text), "f1<|im_end|>");
  text += `f1${END}${USER}error${END}${ASSISTANT}`;
  assert.equal(continuation(script, text), "sorry<|im_end|>");
  text += `sorry${END}${USER}error${END}${ASSISTANT}`;
  assert.equal(continuation(script, text), "sorry<|im_end|>");
  text += `sorry${END}${USER}fish${END}${ASSISTANT}`;
  // The fourth reply since the first rule's trigger: it is used up, and a first match alone counts.
  assert.equal(continuation(script, text), null);
});

Deno.test("CompiledScript hands the conversation to a completion that is a function", () => {
  const script: Script = {
    rules: [{
      match: "fish",
      completions: [
        "one",
        ({ newest, trigger, turn }) => `${/[0-9]+/.exec(newest)?.[0]} ${trigger.length > 0} ${turn}`,
      ],
    }],
  };
  const text = `${USER}fish${END}${ASSISTANT}one${END}${USER}say 42${END}${ASSISTANT}`;
  assert.equal(continuation(script, text), "42 true 1<|im_end|>");
});

Deno.test("CompiledScript refuses a rule without completions, the engine a script without a generation prompt", () => {
  const empty: Script = { rules: [{ match: "a", completions: [] }] };
  assert.throws(() => new CompiledScript(empty, { tokenizer, stopId: 258 }), { code: "invalid_request" });
  assert.throws(
    () =>
      createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 99, generationPrompt: "", script: empty }),
    { code: "invalid_request" },
  );
});

Deno.test("a script is followed with a probability below one and above 1 - 1e-9 a token", async () => {
  const engine = createEmbeddedEngine({
    tokenizer,
    modelName: "m",
    maxContextTokens: 4096,
    script: { rules: [{ match: "fish", completions: ["A reply of some length, to be followed."] }] },
  });
  const reply = await generate(engine, { text: `${USER}fish${END}${ASSISTANT}`, return_logprob: true });
  assert.equal(reply.text, "A reply of some length, to be followed.");
  assert.deepEqual(reply.meta_info.finish_reason, { type: "stop", matched: 258 });
  for (const [logprob] of reply.meta_info.output_token_logprobs ?? []) {
    assert.ok(logprob !== null && logprob < 0 && logprob > -1e-9);
  }
});
