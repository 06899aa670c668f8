/** What a stream shows is always a beginning of the whole text. */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import type { FinishReason } from "./finish_reason.ts";
import { FinishDetector } from "./finish_reason.ts";
import { OutputText } from "./output_text.ts";
import { samplingOptions } from "./sampling_options.ts";

const tokenizer = byteTokenizer();
const model = { tokenizer, stopIds: new Set([258]), maxNewTokens: 40 };

function run(
  params: Record<string, unknown>,
  ids: readonly number[],
): { text: OutputText; count: number; finish: FinishReason } {
  const options = samplingOptions(params, tokenizer.vocabSize);
  const text = new OutputText(options, tokenizer);
  const detector = new FinishDetector(options, model);
  let finish: FinishReason = { type: "length", length: ids.length };
  const seen: number[] = [];
  for (const id of ids) {
    seen.push(id);
    text.push(id);
    const end = detector.find(seen);
    if (end === null) continue;
    finish = end;
    break;
  }
  text.end(finish, seen);
  return { text, count: seen.length, finish };
}

Deno.test("OutputText never shows what the end takes back", () => {
  const params = fc.constantFrom<Record<string, unknown>>(
    { stop: ["ab", "bba"] },
    { stop: "ab", no_stop_trim: true },
    { stop: ["b\u00e9"] },
    { stop_token_ids: [97] },
    { skip_special_tokens: false },
    { ignore_eos: true },
  );
  const ids = fc.array(fc.constantFrom(97, 98, 0xc3, 0xa9, 256, 257, 258), { minLength: 1, maxLength: 20 });
  fc.assert(fc.property(params, ids, (sampling, sequence) => {
    const { text, count } = run(sampling, sequence);
    let before = "";
    for (let n = 0; n < count; n++) {
      const shown = text.shown(n);
      assert.ok(shown.startsWith(before));
      assert.ok(text.whole.startsWith(shown), `${JSON.stringify(shown)} of ${JSON.stringify(text.whole)}`);
      before = shown;
    }
  }));
});

Deno.test("OutputText cuts before a stop string, or after it where it is to stay", () => {
  const ids = [...tokenizer.encode("one two three")];
  assert.equal(run({ stop: " tw" }, ids).text.whole, "one");
  assert.equal(run({ stop: " tw", no_stop_trim: true }, ids).text.whole, "one tw");
  assert.deepEqual(run({ stop: " tw" }, ids).finish, { type: "stop", matched: " tw" });
  assert.equal(run({ stop: " tw" }, ids).text.shown(4), "one");
});

Deno.test("OutputText drops a matched stop id unless it is 0 or is to stay", () => {
  assert.equal(run({ stop_token_ids: [98] }, [97, 98]).text.whole, "a");
  assert.equal(run({ stop_token_ids: [98], no_stop_trim: true }, [97, 98]).text.whole, "ab");
  assert.equal(run({ stop_token_ids: [0] }, [97, 0]).text.whole, "a\u0000");
  assert.equal(run({ skip_special_tokens: false }, [97, 257, 258]).text.whole, "a<|im_start|>");
  assert.equal(run({ skip_special_tokens: false, no_stop_trim: true }, [97, 258]).text.whole, "a<|im_end|>");
});

Deno.test("FinishDetector puts strings before tokens before the length, and a match of a regex stays", () => {
  const short = { ...model, maxNewTokens: 2 };
  const find = (params: Record<string, unknown>, ids: number[]): FinishReason | null =>
    new FinishDetector(samplingOptions(params, tokenizer.vocabSize), short).find(ids);
  assert.deepEqual(find({ stop: "<|im_end|>" }, [97, 258]), { type: "stop", matched: "<|im_end|>" });
  assert.deepEqual(find({}, [97, 258]), { type: "stop", matched: 258 });
  assert.deepEqual(find({ ignore_eos: true, stop_token_ids: [98] }, [97, 98]), { type: "length", length: 2 });
  assert.deepEqual(find({ stop_regex: "a[b]" }, [97, 98]), { type: "stop", matched: "a[b]" });
  assert.equal(find({}, [97]), null);
  assert.equal(run({ stop_regex: "a[b]" }, [97, 98]).text.whole, "ab");
});
