import assert from "node:assert/strict";
import { openapiDocument } from "./openapi.ts";

/** What these tests look into. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly requestBody: {
    readonly content: {
      readonly "application/json": {
        readonly schema: {
          readonly additionalProperties: boolean;
          readonly required?: readonly string[];
          readonly properties: Readonly<Record<string, { readonly enum?: readonly string[] }>>;
        };
      };
    };
  };
  readonly parameters: readonly { readonly name: string }[];
}

const document: Document = JSON.parse(JSON.stringify(openapiDocument()));

Deno.test("openapiDocument() says what a request may hold, field by field", () => {
  const { schema } = document.paths["/tasks"]!.post!.requestBody.content["application/json"];
  assert.equal(schema.additionalProperties, false);
  assert.equal(schema.required, undefined, "every field of a task is optional");
  assert.deepEqual(schema.properties.history?.enum, ["append_only", "branch"]);
  assert.deepEqual(
    document.paths["/tasks/{id}/result"]!.get!.parameters.map((parameter) => parameter.name),
    [
      "id",
      "format",
      "roles",
      "max_version_span",
      "extras",
      "ce_sentinel",
    ],
  );
});

Deno.test("openapiDocument() is plain JSON", () => {
  assert.deepEqual(document, openapiDocument());
});

Deno.test("openapiDocument() refers to nothing that it does not hold", () => {
  const text = JSON.stringify(openapiDocument());
  const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference!);
  assert.ok(references.length > 10);
  for (const reference of references) {
    let found: unknown = JSON.parse(text);
    for (const step of reference.replace(/^#\//, "").split("/")) found = Object(found)[step];
    assert.equal(typeof found, "object", reference);
  }
});
