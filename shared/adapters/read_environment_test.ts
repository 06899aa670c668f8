import assert from "node:assert/strict";
import { VerbatimError } from "../core/errors.ts";
import { givenVariables, readEnvironment } from "./read_environment.ts";

Deno.test("readEnvironment() gives defaults for an empty environment", () => {
  const environment = readEnvironment({});
  assert.equal(environment.HOST, "127.0.0.1");
  assert.equal(environment.PORT, 8787);
  assert.equal(environment.MAX_BODY_BYTES, 67108864);
  assert.equal(environment.SGLANG_ROUTER_URL, undefined);
  assert.deepEqual(environment.PASSTHROUGH_KEYS, []);
});

Deno.test("readEnvironment() reads lists, flags and URLs", () => {
  const given: Record<string, string> = {
    PASSTHROUGH_KEYS: "EMPTY, none",
    TASK_AUTOCREATE: "on",
    SGLANG_ROUTER_URL: "http://127.0.0.1:30000/",
    ROLLOUT_EXTERNAL_ENGINE_ADDRS: "http://a:1,http://b:2",
    KV_PATH: "",
  };
  const environment = readEnvironment(givenVariables((name) => given[name]));
  assert.deepEqual(environment.PASSTHROUGH_KEYS, ["EMPTY", "none"]);
  assert.equal(environment.TASK_AUTOCREATE, true);
  assert.equal(environment.SGLANG_ROUTER_URL, "http://127.0.0.1:30000");
  assert.deepEqual(environment.ROLLOUT_EXTERNAL_ENGINE_ADDRS, ["http://a:1", "http://b:2"]);
  assert.equal(environment.KV_PATH, undefined);
});

Deno.test.each(
  [
    ["PORT", "eighty"],
    ["PORT", "70000"],
    ["SGLANG_ROUTER_URL", "localhost:30000"],
    ["STORE", "redis"],
    ["TASK_AUTOCREATE", "maybe"],
    ["ENGINE_RETRY_S", "-1"],
    ["MAX_CONTEXT_LEN", "0"],
  ] as const,
)("readEnvironment() names the bad variable: %s=%s", (name, value) => {
  assert.throws(
    () => readEnvironment({ [name]: value }),
    (error) => error instanceof VerbatimError && error.code === "not_ready" && error.message.includes(name),
  );
});

Deno.test("givenVariables() takes a host's own name where ours is not set", () => {
  const named = (given: Record<string, string>) => givenVariables((name) => given[name]).DATABASE_URL;
  assert.equal(named({ SUPABASE_DB_URL: "postgres://a/b" }), "postgres://a/b");
  assert.equal(named({ SUPABASE_DB_URL: "postgres://a/b", DATABASE_URL: "postgres://c/d" }), "postgres://c/d");
});
