import assert from "node:assert/strict";
import fc from "fast-check";
import { rendezvousOrder } from "./rendezvous_hash.ts";

const nodes = fc.uniqueArray(fc.webUrl(), { minLength: 1, maxLength: 8 });

Deno.test("rendezvousOrder has every node once, in an order that is the key's alone", () => {
  fc.assert(fc.property(fc.string(), nodes, (key, urls) => {
    const order = rendezvousOrder(key, urls);
    assert.deepEqual([...order].sort(), [...urls].sort());
    assert.deepEqual(rendezvousOrder(key, [...urls].reverse()), order);
  }));
});

Deno.test("rendezvousOrder moves nobody's key but the removed node's, each to its next node", () => {
  fc.assert(fc.property(fc.string(), nodes, fc.nat(), (key, urls, at) => {
    const gone = urls[at % urls.length]!;
    const left = urls.filter((url) => url !== gone);
    assert.deepEqual(rendezvousOrder(key, left), rendezvousOrder(key, urls).filter((url) => url !== gone));
  }));
});

Deno.test("rendezvousOrder spreads keys evenly, over addresses that differ in a digit too", () => {
  const urls = Array.from({ length: 8 }, (_, k) => `http://10.0.0.1:3000${k}`);
  const counts = new Map<string, number>();
  for (let k = 0; k < 8000; k++) {
    const [first] = rendezvousOrder(`task-${k}`, urls);
    counts.set(first!, (counts.get(first!) ?? 0) + 1);
  }
  for (const url of urls) assert.ok(Math.abs((counts.get(url) ?? 0) - 1000) < 150, `${url}: ${counts.get(url)}`);
});
