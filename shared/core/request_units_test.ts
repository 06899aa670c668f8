import assert from "node:assert/strict";
import { conversationOf } from "../../tests/fixtures/conversations.ts";
import type { Json } from "./message.ts";
import { requestUnits } from "./request_units.ts";

Deno.test("requestUnits takes no tool list for the known one that differs in a number beyond all doubles", () => {
  const offering = (value: Json) => ({
    ...conversationOf(["s:be good", "u:do it"]),
    tools: [{ name: "run", raw: { name: "run", parameters: { default: value } } }],
  });
  for (const [earlier, later] of [[null, Infinity], [Infinity, null], [Infinity, -Infinity]] as const) {
    const known = requestUnits(offering(earlier));
    assert.equal(requestUnits(offering(later), { known }).toolsDigest, requestUnits(offering(later)).toolsDigest);
    assert.notEqual(requestUnits(offering(later), { known }).toolsDigest, known.toolsDigest);
    assert.equal(requestUnits(offering(earlier), { known }).toolsDigest, known.toolsDigest);
  }
});
