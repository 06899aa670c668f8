import assert from "node:assert/strict";
import { createMemoryStore } from "../../adapters/memory_store.ts";
import { createTask, makeTask } from "../../../tests/contracts/store_fixtures.ts";
import { createFolderBlobs } from "../../adapters/blobs/folder_blobs.ts";
import { KeptBlobs } from "./kept_blobs.ts";

Deno.test("KeptBlobs keeps what is small in the store and the rest outside, and finds both", async () => {
  const folder = await Deno.makeTempDir();
  const store = createMemoryStore();
  const { task } = await createTask(store, makeTask());
  const blobs = new KeptBlobs({ store, outside: createFolderBlobs(folder), limitBytes: 10 });
  const small = await blobs.put(task, new Uint8Array(10).fill(1));
  const large = await blobs.put(task, new Uint8Array(11).fill(2));
  assert.deepEqual([small.place, large.place], ["store", "outside"]);
  assert.deepEqual(await blobs.get(task, small), new Uint8Array(10).fill(1));
  assert.deepEqual(await blobs.get(task, large), new Uint8Array(11).fill(2));
  const alone = new KeptBlobs({ store, outside: null, limitBytes: 10 });
  await assert.rejects(alone.get(task, large), { code: "internal", message: /BLOB_PATH/ });
  await blobs.removeOutside({ ...task, settings: { ...task.settings, captureExtras: ["top_p_ids"] } });
  await assert.rejects(blobs.get(task, large), { code: "internal" });
  assert.deepEqual(await blobs.get(task, small), new Uint8Array(10).fill(1));
  await Deno.remove(folder, { recursive: true });
});

Deno.test("KeptBlobs keeps everything in the store where there is no other place", async () => {
  const store = createMemoryStore();
  const { task } = await createTask(store, makeTask());
  const blobs = new KeptBlobs({ store, outside: null, limitBytes: 10 });
  const kept = await blobs.put(task, new Uint8Array(1000).fill(3));
  assert.equal(kept.place, "store");
  assert.deepEqual(await blobs.get(task, kept), new Uint8Array(1000).fill(3));
  assert.equal(await blobs.sweepOutside(Number.MAX_SAFE_INTEGER), 0);
});
