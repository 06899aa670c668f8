/** Which fields of a request reach the worker: the known ones as a table, and whole requests as this gateway makes them. */

import assert from "node:assert/strict";
import { createSglangEngine } from "../../shared/adapters/sglang/sglang_engine.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { createTrackedBackground } from "../../shared/adapters/tracked_background.ts";
import { type Body, user } from "../e2e/harness.ts";
import { createListLogger } from "../fixtures/list_logger.ts";
import { type RequestField, SAMPLING_FIELDS, TOP_FIELDS } from "./request_fields.ts";
import { type RoutedGateway, startRoutedGateway } from "./routed_gateway.ts";
import { testOnRouters } from "./test_on_routers.ts";

/** What a worker got of a body that was sent to the router. */
async function arrived({ router, workers }: RoutedGateway, body: Body): Promise<Body> {
  const before = workers.map(({ asked }) => asked.length);
  const response = await fetch(`${router.url}/generate`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await response.body?.cancel();
  const got = workers.flatMap(({ asked }, k) => asked.slice(before[k]));
  assert.equal(got.length, 1, `one worker is asked once, status ${response.status}`);
  return got[0];
}

function expected({ value, dropped }: RequestField, dropping: boolean): unknown {
  return dropped && dropping ? undefined : value;
}

testOnRouters("fields of a request", (router) => {
  const dropping = router.package === "sglang-router";
  const what = `${router.package} ${router.version}`;

  Deno.test(`${what} lets these fields through and ${dropping ? "drops those" : "drops none"}`, async () => {
    await using gateway = await startRoutedGateway(router, { policy: "manual", flags: ["--disable-circuit-breaker"] });
    for (const field of TOP_FIELDS) {
      const got = await arrived(gateway, { input_ids: [1, 2, 3], [field.name]: field.value });
      assert.deepEqual(got[field.name], expected(field, dropping), field.name);
    }
    for (const field of SAMPLING_FIELDS) {
      const { sampling_params: got, input_ids } = await arrived(gateway, {
        input_ids: [0, 151_935, 2_147_483_647],
        sampling_params: { [field.name]: field.value },
      });
      assert.deepEqual(got[field.name], expected(field, dropping), field.name);
      assert.deepEqual(input_ids, [0, 151_935, 2_147_483_647]);
    }
  });

  Deno.test(`${what}: what this gateway sends reaches the worker whole`, async () => {
    await using gateway = await startRoutedGateway(router, { policy: "manual" });
    const { id, key } = await gateway.createTask({
      sampling: {
        fixed: { temperature: 0.7, top_p: 0.9, top_k: 40, min_p: 0.01, frequency_penalty: 0.1, sampling_seed: 7 },
      },
    });
    const schema = { type: "object", properties: { done: { type: "boolean" } }, required: ["done"] };
    const { status, body } = await gateway.chat(key, {
      messages: [user("Anything")],
      max_tokens: 64,
      stop: ["never said"],
      response_format: { type: "json_schema", json_schema: { name: "v", schema } },
      return_token_ids: true,
    });
    assert.equal(status, 200, JSON.stringify(body));
    const got = gateway.workerOf(body.prompt_token_ids).asked.at(-1);
    assert.match(got.rid, /^[0-9a-f]{32}-0000$/);
    assert.deepEqual([got.return_logprob, got.logprob_start_len, got.stream], [true, -1, false]);
    const [turn] = await gateway.turns(id);
    assert.deepEqual(got.sampling_params, { ...turn.sampling, skip_special_tokens: false });
    assert.deepEqual(JSON.parse(got.sampling_params.json_schema), schema);
  });

  Deno.test(`${what}: a force-decode through it finds the same numbers as without it`, async () => {
    await using gateway = await startRoutedGateway(router, { policy: "manual" });
    const logger = createListLogger();
    const through = createSglangEngine({
      url: gateway.router.url,
      vocabSize: 151_936,
      retryMs: 0,
      idleTimeoutMs: 60_000,
      clock: systemClock,
      logger,
      background: createTrackedBackground(logger),
      random: () => 0.5,
    });
    const request = {
      rid: crypto.randomUUID().replaceAll("-", ""),
      prompt: Uint32Array.from({ length: 40 }, (_, k) => 1000 + k),
      response: Uint32Array.of(5, 6, 151_645),
    };
    const signal = AbortSignal.timeout(30_000);
    assert.deepEqual(await through.score(request, signal), await gateway.engine.score(request, signal));
  });
});
