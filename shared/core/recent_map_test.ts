import assert from "node:assert/strict";
import { RecentMap } from "./recent_map.ts";

Deno.test("RecentMap keeps what was used last and forgets the rest", () => {
  const map = new RecentMap<number>(3);
  for (let index = 0; index < 10; index++) {
    map.set(`key${index}`, index);
    assert.equal(map.get("key0"), 0, "used every time");
  }
  assert.equal(map.get("key9"), 9);
  assert.equal(map.get("key8"), 8);
  assert.equal(map.get("key2"), undefined);
});

Deno.test("RecentMap counts weights", () => {
  const map = new RecentMap<string>(100);
  map.set("large", "x", 90);
  map.set("small", "y", 20);
  assert.equal(map.get("large", 90), "x");
  map.set("other", "z", 60);
  assert.equal(map.get("small", 20), undefined);
});
