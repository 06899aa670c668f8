import assert from "node:assert/strict";
import { rememberReading } from "./remember_reading.ts";

Deno.test("rememberReading reads an object once in a place, and anew in another", () => {
  const reads: unknown[] = [];
  const read = rememberReading((item, source) => {
    reads.push(item);
    return { item, source };
  });
  const item = { role: "user" };
  assert.equal(read(item, 1), read(item, 1));
  assert.equal(reads.length, 1);
  assert.deepEqual(read(item, 2), { item, source: 2 });
  read({ role: "user" }, 1);
  assert.equal(reads.length, 3);
});

Deno.test("rememberReading reads what is no object every time, and keeps no failure", () => {
  let reads = 0;
  const read = rememberReading(() => {
    reads++;
    if (reads === 2) throw new Error("unreadable");
    return reads;
  });
  assert.equal(read("text", 0), 1);
  const item = {};
  assert.throws(() => read(item, 0), /unreadable/);
  assert.equal(read(item, 0), 3);
});
