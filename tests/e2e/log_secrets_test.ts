/** What the log must never hold: keys, whatever way they came, and the text of prompts and replies. */

import assert from "node:assert/strict";
import type { Logger } from "../../shared/ports/logger.ts";
import { sharedHarness, user } from "./harness.ts";

const ADMIN = "admin-key-never-to-be-logged";
const lines: string[] = [];

function note(message: string, fields: Record<string, unknown> = {}): void {
  lines.push(message + JSON.stringify(fields));
}

const logger: Logger = { debug: note, info: note, warn: note, error: note };

const harness = sharedHarness({
  environment: { VERBATIM_ADMIN_KEY: ADMIN, ENGINE_RETRY_S: "0", PASSTHROUGH_KEYS: "pass-through-key-secret" },
  parts: { logger },
  engine: { script: { rules: [{ match: "prompt-secret", completions: ["reply-secret it is."] }] } },
});

Deno.test("neither keys nor prompts nor replies are logged, whatever goes wrong", async () => {
  const admin = { authorization: `Bearer ${ADMIN}` };
  const created = await harness().admin("POST", "/tasks", {}, admin);
  const key = created.body.api_key;
  const body = { messages: [user("prompt-secret")] };
  const path = "/v1/chat/completions";
  const { faults } = harness().development.engine;
  const send = async () => {
    for (const prefix of ["", "/proxy-turn"]) {
      for (
        const sent of [
          body,
          { messages: [{ role: "wizard", content: "prompt-secret" }] },
          '{"messages": "prompt-secret',
          { n: 2 },
        ]
      ) {
        await harness().admin("POST", `${prefix}/k/${key}${path}`, sent);
        await harness().admin("POST", `${prefix}/k/unknown-key-secret${path}`, sent);
        await harness().admin("POST", `${prefix}${path}`, sent, { "x-api-key": key });
        await harness().admin("POST", `${prefix}${path}`, sent, { authorization: "Bearer pass-through-key-secret" });
      }
      await harness().admin("GET", `${prefix}/k/${key}/v1/models/none`);
      await harness().admin("GET", `${prefix}/k/${key}/v1/nothing`);
    }
  };
  await send();
  faults.add({ fault: { kind: "http", status: 500, body: "no", contentType: "text/plain" } });
  await send();
  faults.clear();
  faults.add({ fault: { kind: "cut", afterTokens: 1 } });
  await (await harness().stream(key, body)).rest();
  faults.clear();
  await harness().admin("GET", "/tasks", undefined, { authorization: `Bearer ${key}` });
  await harness().admin("GET", "/tasks", undefined, { authorization: "Bearer wrong-key-secret" });
  await harness().admin("POST", "/generate", { input_ids: [-1], sampling_params: { stop: ["prompt-secret"] } }, admin);
  await harness().admin("POST", "/tokenize", '{"prompt": "prompt-secret', admin);
  assert.ok(lines.length > 20, "failures are logged");
  for (const line of lines) {
    for (const secret of [key, ADMIN, "key-secret", "prompt-secret", "reply-secret"]) {
      assert.ok(!line.includes(secret), `"${secret}" stands in the log: ${line.slice(0, 300)}`);
    }
  }
});
