import assert from "node:assert/strict";
import { openapiDocument } from "./openapi.ts";

// deno-lint-ignore no-explicit-any -- a test looks into the document by names
const document = openapiDocument() as any;

Deno.test("openapiDocument() says what a request may hold, field by field", () => {
  const { schema } = document.paths["/tasks"].post.requestBody.content["application/json"];
  assert.equal(schema.additionalProperties, false);
  assert.equal(schema.required, undefined, "every field of a task is optional");
  assert.deepEqual(schema.properties.history.enum, ["append_only", "branch"]);
  assert.deepEqual(
    document.paths["/tasks/{id}/result"].get.parameters.map((parameter: { name: string }) => parameter.name),
    [
      "id",
      "format",
      "roles",
      "max_version_span",
    ],
  );
});

Deno.test("openapiDocument() is plain JSON", () => {
  assert.deepEqual(JSON.parse(JSON.stringify(document)), document);
});
