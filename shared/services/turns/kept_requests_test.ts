import assert from "node:assert/strict";
import { Forest } from "../../core/forest.ts";
import { parseGrowing } from "../../core/growing_json.ts";
import { requestUnits } from "../../core/request_units.ts";
import { conversationOf } from "../../../tests/fixtures/conversations.ts";
import { type KeptRequest, KeptRequests } from "./kept_requests.ts";

function bodyOf(lines: readonly string[]): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ messages: lines.map((line) => ({ line })) }));
}

function keptOf(lines: readonly string[]): KeptRequest {
  const request = requestUnits(conversationOf([...lines]));
  const forest = new Forest();
  return {
    body: parseGrowing(bodyOf(lines), ["messages"]).known,
    request,
    prompt: { forest, units: request.units, node: forest.root },
  };
}

Deno.test("KeptRequests finds the line that a body goes on from, also while others run beside it", () => {
  const requests = new KeptRequests();
  assert.equal(requests.nearest(bodyOf(["s:main"])), null);
  const main = keptOf(["s:main", "u:one"]);
  const helper = keptOf(["s:helper", "u:name this"]);
  requests.keep(main);
  requests.keep(helper);
  assert.equal(requests.nearest(bodyOf(["s:main", "u:one", "u:two"])), main);
  assert.equal(requests.nearest(bodyOf(["s:helper", "u:name this", "u:again"])), helper);
  assert.equal(requests.nearest(bodyOf(["s:unknown"])), helper, "else the latest");
});

Deno.test("KeptRequests keeps the latest of a line, and so many lines", () => {
  const requests = new KeptRequests();
  const line = ["s:main", "u:one", "u:two", "u:three"];
  requests.keep(keptOf(line));
  const before = requests.bytes;
  const longer = keptOf([...line, "u:four"]);
  requests.keep(longer);
  assert.ok(requests.bytes > before && requests.bytes < 2 * before, "the shorter one is gone");
  assert.equal(requests.nearest(bodyOf(line)), longer);
  for (const name of ["a", "b", "c", "d"]) requests.keep(keptOf([`s:${name}`]));
  assert.notEqual(requests.nearest(bodyOf(line)), longer, "the least recently used is gone");
});

Deno.test("KeptRequests takes a request whose end was rewritten for one of its line", () => {
  const requests = new KeptRequests();
  requests.keep(keptOf(["s:main", "u:one", "u:two", "u:three"]));
  const rewritten = keptOf(["s:main", "u:one", "u:other"]);
  const before = requests.bytes;
  requests.keep(rewritten);
  assert.ok(requests.bytes < before);
  assert.equal(requests.nearest(bodyOf(["s:main", "u:one"])), rewritten);
});
