/** What a gateway asks at its start and for its readiness: routers know some questions by their old names alone. */

import assert from "node:assert/strict";
import { packagedTokenizerFolder } from "../../shared/adapters/tokenizer/packaged_tokenizer.ts";
import { readEnvironment } from "../../shared/adapters/read_environment.ts";
import { tokenizerLocation } from "../../shared/compose_model.ts";
import { startHarness } from "../e2e/harness.ts";
import { TEACHER_SEED } from "../e2e/teacher.ts";
import { startRoutedGateway } from "./routed_gateway.ts";
import { testOnRouters } from "./test_on_routers.ts";

testOnRouters("a gateway's start", (router) => {
  Deno.test(`${router.package}: name, tokenizer and weights are those that a worker tells, and the gateway is ready`, async () => {
    const engine = { tokenizerPath: "/models/routed", weightVersion: "v7" };
    await using gateway = await startRoutedGateway(router, { policy: "manual", engine });
    assert.equal(await tokenizerLocation(readEnvironment({ SGLANG_ROUTER_URL: gateway.router.url })), "/models/routed");
    const { status, body } = await gateway.admin("GET", "/readyz");
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(body.models.map(({ name, engine }: typeof body) => [name, engine.weight_version]), [[
      "routed",
      "v7",
    ]]);
  });

  Deno.test(`${router.package}: a teacher behind it is probed, and scores as without it`, async () => {
    await using teacher = await startRoutedGateway(router, { policy: "manual", engine: { seed: TEACHER_SEED } });
    const request = { prompt_ids: [9707, 11], response_ids: [1879, 0, 151645], top_k: 4, token_ids: [5, 6] };
    const scores = [];
    for (const url of [teacher.router.url, teacher.workers[0]!.url]) {
      // A router tokenizes nothing: the vocabulary must be known from files.
      const TEACHER_TOKENIZER = await packagedTokenizerFolder();
      await using gateway = await startHarness({ environment: { TEACHER_SGLANG_URL: url, TEACHER_TOKENIZER } });
      const { status, body } = await gateway.admin("POST", "/teacher-score", request);
      assert.equal(status, 200, JSON.stringify(body));
      scores.push(body);
    }
    const [through, direct] = scores;
    assert.deepEqual(through, direct);
  });
});
