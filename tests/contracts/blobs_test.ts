import { createFolderBlobs } from "../../shared/adapters/blobs/folder_blobs.ts";
import { createMemoryStore } from "../../shared/adapters/memory_store.ts";
import { openDenoKvStore } from "../../shared/adapters/kv/deno_kv_store.ts";
import { openPostgresStore } from "../../shared/adapters/postgres/postgres_store.ts";
import { createS3Blobs } from "../../shared/adapters/blobs/s3_blobs.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { BlobOwner, BlobStore } from "../../shared/ports/blob_store.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import { createFakeClock } from "../fixtures/fake_clock.ts";
import { S3_USER, serveS3 } from "../fixtures/s3_server.ts";
import { type OpenBlobs, testBlobs } from "./blob_contract.ts";
import { emptyDatabase, testOnPostgres } from "./postgres_harness.ts";
import { createTask, makeTask, START_MS } from "./store_fixtures.ts";

/** A task store's owners are its tasks. */
function ofStore(store: TaskStore, dispose: () => Promise<void> = () => store.close()): OpenBlobs {
  const taskIds = new Map<string, string>();
  return {
    blobs: store,
    async makeOwner(lifeMs) {
      const { task } = await createTask(store, makeTask({ expiresAtMs: START_MS + lifeMs }));
      taskIds.set(task.uid, task.taskId);
      return task;
    },
    async remove(owner) {
      const read = await store.getTask(taskIds.get(owner.uid)!);
      if (read?.task.status === "open") await store.dropTask({ ...read.task, status: "dropped" }, read.version);
    },
    async sweep(nowMs) {
      await store.sweep(nowMs);
    },
    dispose,
  };
}

function ofPlace(place: BlobStore, dispose: () => Promise<void>): OpenBlobs {
  return {
    blobs: place,
    makeOwner: (lifeMs): Promise<BlobOwner> =>
      Promise.resolve({ uid: crypto.randomUUID(), expiresAtMs: START_MS + lifeMs }),
    remove: (owner) => place.removeBlobs(owner),
    async sweep(nowMs) {
      await place.sweepBlobs(nowMs);
    },
    dispose,
  };
}

testBlobs("MemoryStore's blobs:", () => Promise.resolve(ofStore(createMemoryStore())));

testBlobs("DenoKvStore's blobs:", async () => {
  const clock = { ...systemClock, now: () => START_MS };
  return ofStore(openDenoKvStore({ kv: await Deno.openKv(":memory:"), clock }));
});

testOnPostgres("PostgresStore's blobs", (database) => {
  testBlobs("PostgresStore's blobs:", async () => {
    const { url } = database();
    await emptyDatabase(url);
    return ofStore(openPostgresStore({ url, clock: systemClock }));
  });
});

testBlobs("FolderBlobs", async () => {
  const folder = await Deno.makeTempDir();
  const place = createFolderBlobs(`${folder}/not/there/yet`);
  return ofPlace(place, () => Deno.remove(folder, { recursive: true }));
});

for (const prefix of ["", "/some where/deep+er"]) {
  testBlobs(`S3Blobs (prefix "${prefix}")`, () => {
    const server = serveS3();
    const place = createS3Blobs({ ...S3_USER, url: server.bucketUrl + prefix, clock: createFakeClock(START_MS) });
    return Promise.resolve(ofPlace(place, async () => await server[Symbol.asyncDispose]()));
  });
}
