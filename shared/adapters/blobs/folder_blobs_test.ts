import assert from "node:assert/strict";
import { createFolderBlobs } from "./folder_blobs.ts";

const OWNER = { uid: "u", expiresAtMs: 1000 };
const BYTES = Uint8Array.of(1, 2, 3);

async function inFolder(check: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await check(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("FolderBlobs shows a file under its name only when it is whole", () =>
  inFolder(async (folder) => {
    const blobs = createFolderBlobs(folder);
    const ref = await blobs.putBlob(OWNER, BYTES);
    const path = `${folder}/000000000001000-u`;
    assert.deepEqual((await Array.fromAsync(Deno.readDir(path))).map(({ name }) => name), [ref.name]);
    // What a process leaves that dies in the middle of a write.
    await Deno.rename(`${path}/${ref.name}`, `${path}/${ref.name}.part`);
    await assert.rejects(blobs.getBlob(OWNER, ref), { code: "internal" });
    await blobs.removeBlobs(OWNER);
    assert.deepEqual(await Array.fromAsync(Deno.readDir(folder)), []);
  }));

Deno.test("FolderBlobs sweeps its own folders alone", () =>
  inFolder(async (folder) => {
    const blobs = createFolderBlobs(folder);
    await blobs.putBlob(OWNER, BYTES);
    await Deno.mkdir(`${folder}/lost+found`);
    await Deno.writeTextFile(`${folder}/000000000000001-file`, "");
    assert.equal(await blobs.sweepBlobs(1000), 1);
    const left = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
    assert.deepEqual(left, ["000000000000001-file", "lost+found"]);
    assert.equal(await createFolderBlobs(`${folder}/nowhere`).sweepBlobs(1000), 0);
  }));

Deno.test("FolderBlobs says that it can't write where it can't", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    await assert.rejects(createFolderBlobs(`${folder}/file`).putBlob(OWNER, BYTES), { code: "not_ready" });
  }));
