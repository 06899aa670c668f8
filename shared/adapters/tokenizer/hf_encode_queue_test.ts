import assert from "node:assert/strict";
import { qwen3Tokenizer, qwen3TokenizerFiles } from "../../../tests/fixtures/qwen3_tokenizer.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { EncodeMessage, EncodeReply } from "./encode_worker.ts";
import { EncodeQueue, type EncodeWorker } from "./hf_encode_queue.ts";
import type { EncoderSource } from "./hf_encoder.ts";
import { createHfTokenizer } from "./hf_tokenizer.ts";

/** A worker that answers only when told to. */
class FakeWorker implements EncodeWorker {
  readonly messages: EncodeMessage[] = [];
  terminated = false;
  onmessage: EncodeWorker["onmessage"] = null;
  onmessageerror: EncodeWorker["onmessageerror"] = null;
  onerror: EncodeWorker["onerror"] = null;

  postMessage(message: EncodeMessage): void {
    this.messages.push(message);
  }

  terminate(): void {
    this.terminated = true;
  }

  texts(): string[] {
    return this.messages.flatMap((message) => message.type === "encode" ? [message.text] : []);
  }

  reply(data: EncodeReply): void {
    this.onmessage?.(new MessageEvent("message", { data }));
  }

  crash(): void {
    this.onerror?.(new ErrorEvent("error", { message: "out of memory", cancelable: true }));
  }
}

const SOURCE: EncoderSource = { type: "library", tokenizerJson: {}, tokenizerConfig: {}, addedTokens: [] };

function fakeQueue() {
  const workers: FakeWorker[] = [];
  const queue = new EncodeQueue(SOURCE, () => {
    const worker = new FakeWorker();
    workers.push(worker);
    return worker;
  });
  const worker = (index: number) => workers[index] ?? assert.fail(`worker ${index} was not started`);
  return { queue, workers, worker };
}

function ids(...values: number[]): EncodeReply {
  return { type: "ids", ids: Uint32Array.from(values) };
}

Deno.test("EncodeQueue starts its worker with the first text and sends one text at a time", async () => {
  const { queue, workers, worker } = fakeQueue();
  assert.equal(workers.length, 0);
  const first = queue.encode("first", {});
  const second = queue.encode("second", { addSpecialTokens: true });
  assert.deepEqual(worker(0).messages[0], { type: "start", source: SOURCE });
  assert.deepEqual(worker(0).texts(), ["first"]);
  worker(0).reply(ids(1));
  assert.deepEqual([...await first], [1]);
  assert.deepEqual(worker(0).texts(), ["first", "second"]);
  worker(0).reply(ids(2));
  assert.deepEqual([...await second], [2]);
  assert.equal(workers.length, 1);
  queue.close();
  assert.ok(worker(0).terminated);
});

Deno.test("EncodeQueue never sends a text whose caller has gone, and drops an answer nobody waits for", async () => {
  const { queue, worker } = fakeQueue();
  const running = new AbortController();
  const waiting = new AbortController();
  const first = queue.encode("first", {}, running.signal);
  const second = queue.encode("second", {}, waiting.signal);
  const third = queue.encode("third", {});
  waiting.abort(new Error("second gone"));
  await assert.rejects(second, { message: "second gone" });
  running.abort(new Error("first gone"));
  await assert.rejects(first, { message: "first gone" });
  worker(0).reply(ids(1));
  assert.deepEqual(worker(0).texts(), ["first", "third"]);
  worker(0).reply(ids(3));
  assert.deepEqual([...await third], [3]);
  const gone = queue.encode("fourth", {}, AbortSignal.abort(new Error("gone")));
  await assert.rejects(gone, { message: "gone" });
  queue.close();
});

Deno.test("EncodeQueue fails the text at which a worker crashed, once, and gives the next a fresh worker", async () => {
  const { queue, workers, worker } = fakeQueue();
  const first = queue.encode("first", {});
  const second = queue.encode("second", {});
  worker(0).crash();
  await assert.rejects(first, (error) => error instanceof VerbatimError && error.code === "internal");
  assert.ok(worker(0).terminated);
  assert.deepEqual(worker(1).texts(), ["second"]);
  worker(0).reply(ids(9));
  worker(1).reply(ids(2));
  assert.deepEqual([...await second], [2]);
  assert.equal(workers.length, 2);
  queue.close();
});

Deno.test("EncodeQueue keeps its worker after a text that could not be encoded", async () => {
  const { queue, workers, worker } = fakeQueue();
  const first = queue.encode("first", {});
  worker(0).reply({ type: "failed", message: "no" });
  await assert.rejects(first, { code: "internal" });
  const second = queue.encode("second", {});
  worker(0).reply(ids(2));
  assert.deepEqual([...await second], [2]);
  assert.equal(workers.length, 1);
  queue.close();
});

Deno.test("EncodeQueue fails what waits when it is closed, and everything after", async () => {
  const { queue } = fakeQueue();
  const first = queue.encode("first", {});
  const second = queue.encode("second", {});
  queue.close();
  await assert.rejects(first, { code: "internal" });
  await assert.rejects(second, { code: "internal" });
  await assert.rejects(queue.encode("third", {}), { code: "internal" });
});

const LONG_TEXT = "Ünïcode 漢字 <|im_end|> don't 12345 \n\t{}".repeat(3000);

Deno.test("encodeAsync gives the same ids by a worker as inline", async () => {
  const inline = await qwen3Tokenizer();
  const tokenizer = createHfTokenizer(await qwen3TokenizerFiles(), { longText: 1000 });
  try {
    const [long, short, aborted] = await Promise.allSettled([
      tokenizer.encodeAsync(LONG_TEXT),
      tokenizer.encodeAsync("short"),
      tokenizer.encodeAsync(LONG_TEXT, { signal: AbortSignal.abort(new Error("gone")) }),
    ]);
    assert.deepEqual(long, { status: "fulfilled", value: inline.encode(LONG_TEXT) });
    assert.deepEqual(short, { status: "fulfilled", value: inline.encode("short") });
    assert.equal(aborted.status, "rejected");
    assert.deepEqual(await tokenizer.encodeAsync(`${LONG_TEXT}x`), inline.encode(`${LONG_TEXT}x`));
    const plainSpans = [0, 100];
    assert.deepEqual(
      await tokenizer.encodeAsync(LONG_TEXT, { plainSpans }),
      inline.encode(LONG_TEXT, { plainSpans }),
    );
    assert.notDeepEqual(inline.encode(LONG_TEXT, { plainSpans }), inline.encode(LONG_TEXT));
  } finally {
    tokenizer.close();
  }
});

Deno.test("encodeAsync gives the same ids by a worker for a vocabulary that the library encodes", async () => {
  const files = {
    tokenizerJson: {
      normalizer: { type: "Replace", pattern: { String: " " }, content: "▁" },
      added_tokens: [{ id: 258, content: "<s>", special: true, normalized: false }],
      model: {
        type: "BPE",
        byte_fallback: true,
        unk_token: null,
        vocab: Object.fromEntries(
          [
            ...Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
            "▁",
            "a",
          ]
            .map((token, id) => [token, id]),
        ),
        merges: [],
      },
    },
    tokenizerConfig: {},
  };
  const tokenizer = createHfTokenizer(files, { longText: 10 });
  try {
    const text = "a a é".repeat(20);
    const found = await tokenizer.encodeAsync(text);
    assert.deepEqual(found, tokenizer.encode(text));
    assert.deepEqual([...found.subarray(0, 5)], [257, 256, 257, 256, 0xc3]);
    assert.deepEqual([...tokenizer.encode("a<s>a")], [257, 258, 257]);
    const plain = await tokenizer.encodeAsync("a<s>a<s>a", { plainSpans: [0, 4] });
    assert.deepEqual([...plain], [257, 0x3c, 0x73, 0x3e, 257, 258, 257]);
  } finally {
    tokenizer.close();
  }
});

Deno.test("encodeAsync encodes inline where no worker is wanted", async () => {
  const tokenizer = await qwen3Tokenizer();
  assert.deepEqual(await tokenizer.encodeAsync(LONG_TEXT), tokenizer.encode(LONG_TEXT));
});
