import assert from "node:assert/strict";
import { Hono } from "hono";
import { hashKey } from "../core/hash_key.ts";
import { keyOf, requireAdmin } from "./authenticate.ts";
import { errorResponse, toVerbatimError } from "./error_response.ts";

const ADMIN = "admin-key";
const TASK = "vk_task";

function appOf(adminKey: string | undefined): Hono {
  const app = new Hono();
  app.use(requireAdmin({ adminKey, isTaskKey: (keyHash) => Promise.resolve(keyHash === hashKey(TASK)) }));
  app.get("/", (context) => context.text("in"));
  app.onError((thrown, context) => errorResponse(context, toVerbatimError(thrown)));
  return app;
}

async function get(app: Hono, headers: Record<string, string>): Promise<string> {
  const response = await app.request("/", { headers });
  if (response.status === 200) return await response.text();
  const { error } = await response.json();
  assert.ok(!error.message.includes(ADMIN) && !error.message.includes(TASK));
  return `${response.status} ${error.code}`;
}

Deno.test("requireAdmin lets the admin key pass, in either header", async () => {
  const app = appOf(ADMIN);
  assert.equal(await get(app, { authorization: `Bearer ${ADMIN}` }), "in");
  assert.equal(await get(app, { authorization: `bearer   ${ADMIN} ` }), "in");
  assert.equal(await get(app, { "x-api-key": ADMIN }), "in");
});

Deno.test("requireAdmin refuses a missing and a wrong key with 401, a task's with 403", async () => {
  const app = appOf(ADMIN);
  assert.equal(await get(app, {}), "401 unauthorized");
  for (const wrong of ["", "Bearer", "Bearer ", `Basic ${ADMIN}`, ADMIN, `Bearer ${ADMIN}x`, `Bearer ${ADMIN} x`]) {
    assert.equal(await get(app, { authorization: wrong }), "401 unauthorized", wrong);
  }
  assert.equal(await get(app, { "x-api-key": "" }), "401 unauthorized");
  assert.equal(await get(app, { authorization: `Bearer ${TASK}` }), "403 forbidden");
  assert.equal(await get(app, { "x-api-key": TASK }), "403 forbidden");
});

Deno.test("requireAdmin without an admin key takes everyone for the admin, but agents", async () => {
  const app = appOf(undefined);
  assert.equal(await get(app, {}), "in");
  assert.equal(await get(app, { authorization: "Bearer whatever" }), "in");
  assert.equal(await get(app, { authorization: `Bearer ${TASK}` }), "403 forbidden");
});

Deno.test("keyOf finds a key in the path, then as a bearer, then in x-api-key", async () => {
  const app = new Hono();
  app.get("/k/:key/v1", (context) => context.json(keyOf(context)));
  app.get("/v1", (context) => context.json(keyOf(context)));
  async function found(path: string, headers: Record<string, string> = {}): Promise<unknown> {
    return await (await app.request(path, { headers })).json();
  }
  const both = { authorization: "Bearer b", "x-api-key": "c" };
  assert.equal(await found("/k/a%2Fa/v1", both), "a/a");
  assert.equal(await found("/v1", both), "b");
  assert.equal(await found("/v1", { authorization: "Basic b", "x-api-key": "c" }), "c");
  assert.equal(await found("/v1"), null);
});
