import assert from "node:assert/strict";
import { isOlder, youngParameters } from "./sglang_release.ts";

Deno.test("isOlder compares releases by their numbers, and takes no unreadable one for old", () => {
  const older = [["0.4.7", "0.4.8"], ["0.4.10", "0.5.3"], ["0.5.2.post1", "0.5.3"], ["0.5.3rc0", "0.5.4"]] as const;
  for (const [one, other] of older) {
    assert.ok(isOlder(one, other), `${one} ${other}`);
    assert.equal(isOlder(other, one), false);
  }
  for (const release of ["0.5.3", "0.5.10", "0.5.15.post1", "1.0.0", "0.0.0.dev1+gabc", "main", ""]) {
    assert.equal(isOlder(release, "0.5.3"), false, release);
  }
});

Deno.test("youngParameters are those that are set and that some release does not know", () => {
  assert.deepEqual(youngParameters({ temperature: 1, structural_tag: "{}", sampling_seed: undefined }), []);
  assert.deepEqual(youngParameters({ sampling_seed: 0, stop_regex: ["x"] }), [
    { parameter: "sampling_seed", since: "0.5.3" },
    { parameter: "stop_regex", since: "0.5.4" },
  ]);
});
