import assert from "node:assert/strict";
import fc from "fast-check";
import { readSse } from "./read_sse.ts";

const encoder = new TextEncoder();

/** The data of a text that comes cut at these places. */
async function read(text: string, cuts: readonly number[] = []): Promise<string[]> {
  const bytes = encoder.encode(text);
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)) {
    parts.push(bytes.slice(from, cut));
    from = cut;
  }
  const events: string[] = [];
  for await (const data of readSse(ReadableStream.from(parts))) events.push(data);
  return events;
}

const line = fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\r\n]/g, ""));
const event = fc.record({
  data: fc.array(line, { minLength: 1, maxLength: 3 }),
  others: fc.array(fc.constantFrom(": comment", "event: x", "id: 7", "retry: 1", "data"), { maxLength: 2 }),
});

Deno.test("readSse gives each event's data, wherever the bytes are cut and however lines end", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { maxLength: 6 }),
      fc.array(fc.nat()),
      fc.boolean(),
      async (events, cuts, crlf) => {
        const text = events.flatMap(({ data, others }) => [...others, ...data.map((one) => `data: ${one}`), "", ""])
          .map((one) => one + (crlf ? "\r\n" : "\n")).join("");
        assert.deepEqual(await read(text, cuts), events.map(({ data }) => data.join("\n")));
      },
    ),
  );
});

Deno.test("readSse leaves out one space after the colon, and needs none", async () => {
  assert.deepEqual(await read("data:a\n\ndata: b\n\ndata:  c\n\ndata:\n\n"), ["a", "b", " c", ""]);
});

Deno.test("readSse gives no event that is not finished, and none without data", async () => {
  assert.deepEqual(await read("data: a\n\ndata: cut"), ["a"]);
  assert.deepEqual(await read("data: a\n\ndata: cut\n"), ["a"]);
  assert.deepEqual(await read("\n\n: keep-alive\n\nevent: x\n\n"), []);
  assert.deepEqual(await read(""), []);
});

Deno.test("readSse cancels the body when its reader leaves, and gives on what the body throws", async () => {
  let cancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(encoder.encode("data: a\n\n")),
    cancel() {
      cancelled = true;
    },
  });
  for await (const data of readSse(endless)) {
    assert.equal(data, "a");
    break;
  }
  assert.ok(cancelled);
  const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error("reset")) });
  await assert.rejects(readSse(broken).next(), { message: "reset" });
});

Deno.test("readSse reads a line of any length in pieces of any size", async () => {
  const parts = [encoder.encode("data: "), ...Array.from({ length: 5000 }, () => encoder.encode("x".repeat(1000)))];
  const { value } = await readSse(ReadableStream.from([...parts, encoder.encode("\n\n")])).next();
  assert.equal(value, "x".repeat(5_000_000));
});
