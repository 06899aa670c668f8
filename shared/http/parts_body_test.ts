import assert from "node:assert/strict";
import { partsBody, tensorsResponse, wantsTensors } from "./parts_body.ts";

Deno.test("partsBody hands parts on in order, empty ones left out, and makes none ahead", async () => {
  let made = 0;
  function* parts(): Generator<string | Uint8Array> {
    for (const part of ["a\u00e9", "", Uint8Array.of(33), "", "end"]) {
      made++;
      yield part;
    }
  }
  const reader = partsBody(parts()).getReader();
  assert.equal(made, 0);
  const first = await reader.read();
  assert.deepEqual([new TextDecoder().decode(first.value), made], ["a\u00e9", 1]);
  assert.deepEqual((await reader.read()).value, Uint8Array.of(33));
  assert.equal(made, 3);
  assert.equal(new TextDecoder().decode((await reader.read()).value), "end");
  assert.equal((await reader.read()).done, true);
});

Deno.test("partsBody ends its source when the client leaves", async () => {
  let ended = false;
  function* parts(): Generator<string> {
    try {
      for (;;) yield "more";
    } finally {
      ended = true;
    }
  }
  const reader = partsBody(parts()).getReader();
  await reader.read();
  await reader.cancel();
  assert.equal(ended, true);
});

Deno.test("partsBody breaks off where its source fails", async () => {
  function* parts(): Generator<string> {
    yield "a";
    throw new Error("broken");
  }
  await assert.rejects(new Response(partsBody(parts())).text(), /broken/);
});

Deno.test("wantsTensors looks for the type in the whole list", () => {
  assert.equal(wantsTensors("text/html, application/x-safetensors;q=0.9"), true);
  assert.equal(wantsTensors("Application/X-Safetensors"), true);
  for (const accept of [undefined, "", "*/*", "application/json", "application/x-safetensors2"]) {
    assert.equal(wantsTensors(accept), false, accept);
  }
});

Deno.test("tensorsResponse says its length", async () => {
  const response = tensorsResponse({ parts: [Uint8Array.of(1), Uint8Array.of(2, 3)], byteLength: 3 });
  assert.equal(response.headers.get("content-length"), "3");
  assert.deepEqual(new Uint8Array(await response.arrayBuffer()), Uint8Array.of(1, 2, 3));
});
