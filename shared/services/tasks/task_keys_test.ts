import assert from "node:assert/strict";
import { createMemoryStore } from "../../adapters/memory_store.ts";
import { hashKey } from "../../core/hash_key.ts";
import { TaskKeys } from "./task_keys.ts";

Deno.test("TaskKeys gives a task the same key always, and no two the same", async () => {
  const store = createMemoryStore();
  const keys = new TaskKeys(store);
  const first = await keys.keyOf("a".repeat(32));
  assert.deepEqual(await keys.keyOf("a".repeat(32)), first);
  assert.deepEqual(await new TaskKeys(store).keyOf("a".repeat(32)), first, "another process of the same store");
  assert.notEqual((await keys.keyOf("b".repeat(32))).key, first.key);
  assert.notEqual((await new TaskKeys(createMemoryStore()).keyOf("a".repeat(32))).key, first.key);
  assert.match(first.key, /^vk_[\w-]{43}$/);
  assert.equal(first.keyHash, hashKey(first.key));
});

Deno.test("TaskKeys derives with HMAC-SHA256, so that keys outlive versions", async () => {
  const keys = new TaskKeys({ rootSecret: () => Promise.resolve(new Uint8Array(32).fill(7)) });
  assert.equal(
    (await keys.keyOf("00112233445566778899aabbccddeeff")).key,
    "vk_kYZueyesumDa-0sK8fgviARe0e4NpxrEk_m0iDx2e0g",
  );
});

Deno.test("TaskKeys reads the secret once, and again after a failure", async () => {
  let reads = 0;
  const keys = new TaskKeys({
    rootSecret() {
      reads++;
      return reads === 1 ? Promise.reject(new Error("down")) : Promise.resolve(new Uint8Array(32));
    },
  });
  await assert.rejects(keys.keyOf("a"), { message: "down" });
  await Promise.all([keys.keyOf("a"), keys.keyOf("b")]);
  await keys.keyOf("a");
  assert.equal(reads, 2);
});
