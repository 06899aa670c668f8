import assert from "node:assert/strict";
import { conversationOf, requestOf } from "../../tests/fixtures/conversations.ts";
import { repeatDigest } from "./repeat_digest.ts";
import { requestUnits } from "./request_units.ts";

const START = ["s:be good", "u:do it"];

Deno.test("repeatDigest is equal for the same request, whatever the order of keys", () => {
  const digest = repeatDigest(requestOf(START), { temperature: 1, top_p: 1 });
  assert.match(digest, /^[0-9a-f]{32}$/);
  assert.equal(repeatDigest(requestOf(START), { top_p: 1.0, temperature: 1 }), digest);
  const tool = (raw: { [key: string]: string }) =>
    requestUnits({ ...conversationOf(START), tools: [{ name: "run", raw }] });
  assert.equal(
    repeatDigest(tool({ name: "run", description: "runs" }), {}),
    repeatDigest(tool({ description: "runs", name: "run" }), {}),
  );
});

Deno.test("repeatDigest differs with messages, tools, their order, template settings and sampling", () => {
  const digests = [
    repeatDigest(requestOf(START), {}),
    repeatDigest(requestOf([...START, "u:more"]), {}),
    repeatDigest(requestOf(START, { tools: [] }), {}),
    repeatDigest(requestOf(START, { tools: ["run", "look"] }), {}),
    repeatDigest(requestOf(START, { tools: ["look", "run"] }), {}),
    repeatDigest(requestOf(START, { settings: { enable_thinking: false } }), {}),
    repeatDigest(requestOf(START), {}, { toolChoice: "none" }),
    repeatDigest(requestOf(START), {}, { toolChoice: { name: "none" } }),
    repeatDigest(requestOf(START), { temperature: 1 }),
    repeatDigest(requestOf(START), { temperature: 1, stop: ["a", "b"] }),
    repeatDigest(requestOf(START), { temperature: 1, stop: ["b", "a"] }),
  ];
  assert.equal(new Set(digests).size, digests.length);
});
