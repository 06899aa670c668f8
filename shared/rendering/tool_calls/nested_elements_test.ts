import assert from "node:assert/strict";
import type { Json } from "../../core/message.ts";
import { ArgumentSchema } from "./argument_schema.ts";
import { MessageSink } from "./message_sink.ts";
import { typeElement } from "./nested_elements.ts";

function typed(text: string, property: Json): { value: unknown; problems: readonly string[] } {
  const sink = new MessageSink();
  const schema = new ArgumentSchema({ properties: { x: property } });
  const json = typeElement(text.replaceAll("<", "~<"), { tag: "~", schema, property, sink });
  return { value: JSON.parse(json), problems: sink.result().parse.problems };
}

Deno.test("typeElement types nested objects and arrays by the nested schema", () => {
  const tree = {
    type: "object",
    properties: { id: { type: "integer" }, kids: { type: "array", items: { type: "object" } } },
  };
  assert.deepEqual(typed("<id>1</id>\n<kids><item><id>2</id></item><item><id>3</id></item></kids>", tree), {
    value: { id: 1, kids: [{ id: "2" }, { id: "3" }] },
    problems: [],
  });
});

Deno.test("typeElement reads elements of one name within each other", () => {
  const matrix = { type: "array", items: { type: "array", items: { type: "integer" } } };
  assert.deepEqual(typed("<item><item>1</item><item>2</item></item><item><item>3</item></item>", matrix).value, [
    [1, 2],
    [3],
  ]);
});

Deno.test("typeElement takes text where elements do not fit or do not close", () => {
  assert.deepEqual(typed("<b>1</b>", { type: "string" }).value, "~<b>1~</b>");
  assert.deepEqual(typed("x <b>1</b>", { type: "object" }), { value: "x ~<b>1~</b>", problems: ["argument_type"] });
  assert.deepEqual(typed("<b>1", { type: "object" }).problems, ["argument_type"]);
  assert.deepEqual(typed('{"a": 1}', { type: "object" }), { value: { a: 1 }, problems: [] });
});
