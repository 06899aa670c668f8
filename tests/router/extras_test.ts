/** Extras through a real router: refused where it drops what asks for them, else the engine's own, position by position. */

import assert from "node:assert/strict";
import { routedExperts } from "../../shared/engine/routed_experts.ts";
import { user } from "../e2e/harness.ts";
import { startRoutedGateway } from "./routed_gateway.ts";
import { testOnRouters } from "./test_on_routers.ts";

const EXPERTS = { layers: 2, topK: 2, experts: 8 };
const OPTIONS = { policy: "manual", engine: { experts: EXPERTS, topPTokenIds: true } } as const;
const TASK = { sampling: { fixed: { top_p: 0.8 } } };

testOnRouters("extras", (router) => {
  const what = `${router.package} ${router.version}`;

  if (router.package === "sglang-router") {
    Deno.test(`${what}: a task that wants what the router drops is refused`, async () => {
      await using gateway = await startRoutedGateway(router, OPTIONS);
      for (const extra of ["routed_experts", "top_p_ids"]) {
        const { status, body } = await gateway.admin("POST", "/tasks", { ...TASK, capture_extras: [extra] });
        assert.deepEqual([status, body.error?.code, body.error?.details.field], [400, "unsupported", "capture_extras"]);
      }
      await gateway.createTask({ capture_extras: ["prefix_cache_info"] });
    });
    return;
  }

  Deno.test(`${what}: extras come through it`, async () => {
    await using gateway = await startRoutedGateway(router, OPTIONS);
    const { id, key } = await gateway.createTask({ ...TASK, capture_extras: ["routed_experts", "top_p_ids"] });
    const messages = [user("one")];
    for (const question of ["two", "three"]) {
      const { status, body } = await gateway.chat(key, { messages, max_tokens: 6 });
      assert.equal(status, 200, JSON.stringify(body));
      messages.push(body.choices[0].message, user(question));
    }
    const { body: { result } } = await gateway.admin("GET", `/tasks/${id}/result`);
    const ids = Uint32Array.from([...result.prompt_token_ids, ...result.completion_token_ids]);
    const expected = routedExperts(ids, { from: 0, to: ids.length - 1 }, EXPERTS);
    assert.equal(result.extras.routed_experts.base64, new Uint8Array(expected.buffer).toBase64());
    assert.deepEqual(result.extras_missing, []);
  });
});
