import assert from "node:assert/strict";
import type { BlobStore } from "../../ports/blob_store.ts";
import { createFakeClock, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { S3_USER, type S3Server, serveS3 } from "../../../tests/fixtures/s3_server.ts";
import { createS3Blobs, type S3BlobsOptions } from "./s3_blobs.ts";

const OWNER = { uid: "u", expiresAtMs: 2_000_000_000_000 };
const BYTES = Uint8Array.of(1, 2, 3);

interface World {
  readonly server: S3Server;
  readonly blobs: BlobStore;
  readonly clock: FakeClock;
}

async function inWorld(check: (world: World) => Promise<void>, options: Partial<S3BlobsOptions> = {}): Promise<void> {
  await using server = serveS3();
  const clock = createFakeClock();
  await check({ server, clock, blobs: createS3Blobs({ ...S3_USER, url: server.bucketUrl, clock, ...options }) });
}

Deno.test("S3Blobs names objects by the owner's end and its uid, under the bucket's prefix", () =>
  inWorld(async ({ server }) => {
    const blobs = createS3Blobs({ ...S3_USER, url: `${server.bucketUrl}/runs/7`, clock: createFakeClock() });
    const { name } = await blobs.putBlob({ uid: "u-1", expiresAtMs: 1_999.5 }, BYTES);
    assert.deepEqual([...server.objects.keys()], [`runs/7/000000000002000-u-1/${name}`]);
  }));

Deno.test("S3Blobs tries again what may pass, and gives up after the third time", () => {
  let failures = 2;
  let sent = 0;
  return inWorld(async ({ blobs, clock }) => {
    const put = blobs.putBlob(OWNER, BYTES);
    await throughPauses(clock);
    assert.deepEqual(await blobs.getBlob(OWNER, await put), BYTES);
    assert.equal(sent, 4);

    failures = Infinity;
    const lost = assert.rejects(blobs.putBlob(OWNER, BYTES), { code: "not_ready", retryable: true });
    await throughPauses(clock);
    await lost;
    assert.equal(sent, 7);
  }, {
    fetch(input, init) {
      sent++;
      return failures-- > 0 ? Promise.resolve(new Response("SlowDown", { status: 503 })) : fetch(input, init);
    },
  });
});

async function throughPauses(clock: FakeClock): Promise<void> {
  for (const pauseMs of [200, 400]) {
    await clock.untilSleeping(1);
    await clock.advance(pauseMs);
  }
}

Deno.test("S3Blobs tries again where no answer came", () => {
  let broken = 1;
  return inWorld(async ({ server, blobs, clock }) => {
    const put = blobs.putBlob(OWNER, BYTES);
    await clock.untilSleeping(1);
    await clock.advance(200);
    await put;
    assert.equal(server.objects.size, 1);
  }, {
    fetch: (input, init) => broken-- > 0 ? Promise.reject(new TypeError("connection reset")) : fetch(input, init),
  });
});

Deno.test("S3Blobs is refused at once with a wrong secret", () =>
  inWorld(async ({ server, blobs }) => {
    await assert.rejects(blobs.putBlob(OWNER, BYTES), { code: "not_ready" });
    assert.equal(server.requests.length, 1);
  }, { secretAccessKey: "wrong" }));

Deno.test("S3Blobs never takes a bucket that is not there for one that keeps", () =>
  inWorld(async ({ server }) => {
    const blobs = createS3Blobs({ ...S3_USER, url: `${server.url}/nowhere`, clock: createFakeClock() });
    await assert.rejects(blobs.putBlob(OWNER, BYTES), { code: "not_ready" });
    await assert.rejects(blobs.removeBlobs(OWNER), { code: "not_ready" });
    await assert.rejects(blobs.sweepBlobs(1), { code: "not_ready" });
  }));

Deno.test("S3Blobs counts the bytes that come back", () =>
  inWorld(async ({ server, blobs }) => {
    const ref = await blobs.putBlob(OWNER, BYTES);
    const [key] = server.objects.keys();
    server.objects.set(key!, BYTES.slice(1));
    await assert.rejects(blobs.getBlob(OWNER, ref), { code: "internal" });
  }));

Deno.test("S3Blobs sweeps over many pages, and leaves what is not its own", () =>
  inWorld(async ({ server, blobs }) => {
    const owners = Array.from({ length: 4 }, (_, index) => ({ uid: `u${index}`, expiresAtMs: 1000 + index }));
    for (const owner of owners) for (let count = 0; count < 2; count++) await blobs.putBlob(owner, BYTES);
    server.objects.set("readme.txt", BYTES);
    assert.equal(await blobs.sweepBlobs(1002), 3);
    const left = [...server.objects.keys()];
    assert.equal(left.length, 3);
    assert.equal(left.filter((key) => key.startsWith("000000000001003-u3/")).length, 2);
    assert.equal(await blobs.sweepBlobs(1002), 0);
  }));
