import assert from "node:assert/strict";
import fc from "fast-check";
import { FrameQueue } from "./frame_queue.ts";

/** Everything a queue gives, taking each time it is ready. */
async function drain(queue: FrameQueue, taken: string[] = []): Promise<string[]> {
  for (;;) {
    await queue.ready();
    const text = queue.take();
    if (text === null) return taken;
    taken.push(text);
  }
}

Deno.test("FrameQueue gives all frames in order, however source and reader take turns", async () => {
  const step = fc.record({ frame: fc.string(), pauses: fc.nat(3), takes: fc.boolean() });
  await fc.assert(fc.asyncProperty(fc.array(step), async (steps) => {
    const taken: string[] = [];
    async function* frames(): AsyncGenerator<string> {
      await Promise.resolve();
      for (const { frame, pauses, takes } of steps) {
        for (let pause = 0; pause < pauses; pause++) await Promise.resolve();
        if (takes) taken.push(queue.take() ?? "");
        yield frame;
      }
    }
    const queue = new FrameQueue(frames());
    assert.equal((await drain(queue, taken)).join(""), steps.map(({ frame }) => frame).join(""));
  }));
});

Deno.test("FrameQueue joins what a slow reader left, in pieces of bounded length", async () => {
  const frame = "x".repeat(1000);
  async function* frames(): AsyncGenerator<string> {
    for (let n = 0; n < 500; n++) yield frame;
    await Promise.resolve();
  }
  const queue = new FrameQueue(frames());
  for (let turn = 0; turn < 2000; turn++) await Promise.resolve();
  const taken = await drain(queue);
  assert.equal(taken.join(""), frame.repeat(500));
  assert.ok(taken.every((text) => text.length <= 66 * 1000));
  assert.ok(taken.length <= 8);
});

Deno.test("FrameQueue throws what its source threw, after the frames before it", async () => {
  async function* frames(): AsyncGenerator<string> {
    yield "a";
    await Promise.resolve();
    throw new Error("inner");
  }
  const queue = new FrameQueue(frames());
  await assert.rejects(drain(queue), { message: "inner" });
  const late = new FrameQueue(frames());
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  assert.equal(late.take(), "a");
  assert.throws(() => late.take(), { message: "inner" });
});

Deno.test("FrameQueue.cancel wakes the reader, gives nothing more and takes no interest in how the source ends", async () => {
  const waits = Promise.withResolvers<void>();
  async function* frames(): AsyncGenerator<string> {
    yield "a";
    await waits.promise;
    yield "b";
  }
  const queue = new FrameQueue(frames());
  await queue.ready();
  queue.take();
  const ready = queue.ready();
  queue.cancel();
  await ready;
  assert.equal(queue.take(), null);
  waits.reject(new Error("inner"));
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  assert.equal(queue.take(), null);
});
