import assert from "node:assert/strict";
import { askByEitherName, MODEL_INFO } from "./ask_by_either_name.ts";
import { EngineFailure } from "./engine_failure.ts";

/** Asks somebody who answers with these statuses, by path; 200 is the path. */
async function ask(statuses: Readonly<Record<string, number>>): Promise<string> {
  return await askByEitherName(MODEL_INFO, (path) => {
    const status = statuses[path];
    if (status === 200) return Promise.resolve(path);
    if (status === undefined) return Promise.reject(new TypeError("not asked"));
    return Promise.reject(new EngineFailure("refused", path, { status }));
  });
}

Deno.test("the present name is asked first, and alone where it is known", async () => {
  assert.equal(await ask({ "/model_info": 200 }), "/model_info");
});

Deno.test("where nobody knows it the old name is asked", async () => {
  assert.equal(await ask({ "/model_info": 404, "/get_model_info": 200 }), "/get_model_info");
  await assert.rejects(ask({ "/model_info": 404, "/get_model_info": 404 }), { message: "/get_model_info" });
});

Deno.test("any other failure is not asked away", async () => {
  await assert.rejects(ask({ "/model_info": 401, "/get_model_info": 200 }), { message: "/model_info" });
  await assert.rejects(ask({}), TypeError);
});
