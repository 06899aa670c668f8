/** What every keeper of blobs must do, a task store or a place of its own, as one suite. It knows the port alone. */

import assert from "node:assert/strict";
import type { BlobOwner, Blobs } from "../../shared/ports/blob_store.ts";
import { START_MS, TTL_MS } from "./store_fixtures.ts";

/** One keeper for one test. */
export interface OpenBlobs {
  readonly blobs: Blobs;
  /** A living owner with nothing kept yet, which ends `lifeMs` after the tests' moment. */
  makeOwner(lifeMs: number): Promise<BlobOwner>;
  /** Ends an owner: what is kept under it goes. */
  remove(owner: BlobOwner): Promise<void>;
  /** Removes what expired at this moment or before. */
  sweep(nowMs: number): Promise<void>;
  dispose(): Promise<void>;
}

type Check = (opened: OpenBlobs) => Promise<void>;

/** Sizes around the chunks and parts that adapters make. */
const SIZES = [0, 1, 61_440, 61_441, 200_000, 4 * 1024 * 1024 + 1];

function bytesOf(length: number, seed: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (index * 31 + seed * 7 + (index >> 8)) & 0xff);
}

const CHECKS: Readonly<Record<string, Check>> = {
  "gives bytes of any size back bit for bit": async ({ blobs, makeOwner }) => {
    const owner = await makeOwner(TTL_MS);
    const kept = await Promise.all(SIZES.map((size, seed) => blobs.putBlob(owner, bytesOf(size, seed))));
    assert.equal(new Set(kept.map(({ name }) => name)).size, SIZES.length, "names differ");
    for (const [seed, ref] of kept.entries()) {
      assert.equal(ref.bytes, SIZES[seed]);
      // A record holds it as JSON.
      const read = await blobs.getBlob(owner, JSON.parse(JSON.stringify(ref)));
      assert.deepEqual(read, bytesOf(SIZES[seed]!, seed));
    }
  },

  "takes a view into a larger buffer for what it shows, and keeps no hold of it": async ({ blobs, makeOwner }) => {
    const owner = await makeOwner(TTL_MS);
    const buffer = bytesOf(1000, 1);
    const ref = await blobs.putBlob(owner, buffer.subarray(100, 300));
    buffer.fill(0);
    assert.deepEqual(await blobs.getBlob(owner, ref), bytesOf(1000, 1).slice(100, 300));
  },

  "gives each owner its own": async ({ blobs, makeOwner }) => {
    const [own, other] = [await makeOwner(TTL_MS), await makeOwner(TTL_MS)];
    const ref = await blobs.putBlob(own, bytesOf(10, 1));
    await assert.rejects(blobs.getBlob(other, ref), { code: "internal" });
  },

  "fails where bytes are missing, or of another number": async ({ blobs, makeOwner }) => {
    const owner = await makeOwner(TTL_MS);
    const ref = await blobs.putBlob(owner, bytesOf(100_000, 1));
    await assert.rejects(blobs.getBlob(owner, { ...ref, bytes: 100_001 }), { code: "internal" });
    await assert.rejects(blobs.getBlob(owner, { ...ref, bytes: 99_999 }), { code: "internal" });
    await assert.rejects(blobs.getBlob(owner, { ...ref, name: `0${ref.name}` }), { code: "internal" });
  },

  "removes an owner's blobs with it, and no other's": async ({ blobs, makeOwner, remove }) => {
    const [gone, kept] = [await makeOwner(TTL_MS), await makeOwner(TTL_MS)];
    const refs = [];
    for (let count = 0; count < 5; count++) refs.push(await blobs.putBlob(gone, bytesOf(70_000, count)));
    const left = await blobs.putBlob(kept, bytesOf(10, 1));
    await remove(gone);
    for (const ref of refs) await assert.rejects(blobs.getBlob(gone, ref), { code: "internal" });
    assert.deepEqual(await blobs.getBlob(kept, left), bytesOf(10, 1));
    await remove(gone);
  },

  "sweeps what has expired, and only that": async ({ blobs, makeOwner, sweep }) => {
    const [old, young] = [await makeOwner(1000), await makeOwner(2000)];
    const [first, second] = [await blobs.putBlob(old, bytesOf(10, 1)), await blobs.putBlob(old, bytesOf(10, 2))];
    const left = await blobs.putBlob(young, bytesOf(10, 3));
    await sweep(START_MS + 999);
    assert.deepEqual(await blobs.getBlob(old, first), bytesOf(10, 1));
    await sweep(START_MS + 1000);
    for (const ref of [first, second]) await assert.rejects(blobs.getBlob(old, ref), { code: "internal" });
    assert.deepEqual(await blobs.getBlob(young, left), bytesOf(10, 3));
  },
};

/** Registers the suite for one adapter; every test gets an empty keeper from `open`. */
export function testBlobs(name: string, open: () => Promise<OpenBlobs>): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name} ${behaviour}`, async () => {
      const opened = await open();
      try {
        await check(opened);
      } finally {
        await opened.dispose();
      }
    });
  }
}
