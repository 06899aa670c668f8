/** Grammars and biases through a router that may drop them: in force, or refused with the reason; never silently left out. */

import assert from "node:assert/strict";
import { type Body, user } from "../e2e/harness.ts";
import { startRoutedGateway } from "./routed_gateway.ts";
import { testOnRouters } from "./test_on_routers.ts";

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const forced = {
  messages: [user("Anything at all")],
  max_tokens: 400,
  tools: [{ type: "function", function: { name: "look", parameters } }],
  tool_choice: "required",
};
const structured = {
  messages: [user("Anything at all")],
  response_format: { type: "json_schema", json_schema: { name: "v", schema: parameters } },
};

testOnRouters("grammars", (router) => {
  const dropping = router.package === "sglang-router";

  Deno.test(`${router.package}: a forced call ${dropping ? "is refused, since its grammar would be dropped" : "comes"}`, async () => {
    await using gateway = await startRoutedGateway(router, { policy: "manual" });
    const { id, key } = await gateway.createTask();
    for (const stream of [false, true]) {
      if (dropping) {
        const { status, headers, body } = await gateway.chat(key, { ...forced, stream });
        assert.deepEqual([status, body.error.code, headers.get("x-should-retry")], [400, "unsupported", "false"]);
        assert.match(body.error.message, /structural_tag does not reach the engine: a router/);
      } else if (!stream) {
        const { body } = await gateway.chat(key, forced);
        assertCalls(body.choices[0].message);
      } else {
        const frames = await (await gateway.stream(key, forced)).rest();
        const calls = frames.flatMap(({ choices }) => choices[0]?.delta?.tool_calls ?? []);
        assertCalls({ tool_calls: calls });
      }
    }
    const turns = await gateway.turns(id);
    assert.deepEqual(turns.map(({ basis }) => basis.constrained), dropping ? [] : [true, true]);
    // Without a force the agent goes on, on the same task.
    assert.equal((await gateway.chat(key, { ...forced, tool_choice: "auto", max_tokens: 8 })).status, 200);
  });

  Deno.test(`${router.package}: an answer by schema follows it`, async () => {
    await using gateway = await startRoutedGateway(router, { policy: "manual" });
    const { key } = await gateway.createTask();
    const { status, body } = await gateway.chat(key, structured);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(typeof JSON.parse(body.choices[0].message.content).city, "string");
  });

  Deno.test(`${router.package}: what a task fixes is ${dropping ? "refused where it would be dropped" : "in force"}`, async () => {
    await using gateway = await startRoutedGateway(router, { policy: "manual" });
    for (const fixed of [{ logit_bias: { "1000": 40 } }, { stop_regex: ["[a-z]"] }, { custom_params: { a: 1 } }]) {
      const { key, id } = await gateway.createTask({ sampling: { fixed } });
      const { status, body } = await gateway.chat(key, { messages: [user("Hello")], max_tokens: 16 });
      assert.equal(status, dropping ? 400 : 200, JSON.stringify(body));
      if (dropping) assert.equal(body.error.code, "unsupported");
      assert.equal((await gateway.task(id)).turns, dropping ? 0 : 1);
    }
  });
});

function assertCalls({ tool_calls: calls }: Body): void {
  assert.ok(calls.length > 0);
  for (const { function: called } of calls) {
    assert.equal(called.name, "look");
    assert.equal(typeof JSON.parse(called.arguments).city, "string");
  }
}
