import assert from "node:assert/strict";
import { MessageSink } from "./message_sink.ts";

const CALL = { name: "f", arguments: "{}" };

Deno.test("MessageSink trims white space beside calls and joins the texts around them by one newline", () => {
  const sink = new MessageSink();
  sink.content(" a ");
  sink.content("\n");
  sink.call(CALL, 10);
  sink.call(CALL, 10);
  sink.content("\n ");
  sink.content(" b \n");
  sink.end();
  assert.equal(sink.result().content, " a\nb \n");
  assert.deepEqual(sink.accounting, { reasoning: 0, content: 10, markup: 20 });
});

Deno.test("MessageSink leaves the text around framing as it is", () => {
  const sink = new MessageSink();
  sink.content("a \n");
  sink.framing(5);
  sink.content(" b");
  sink.end();
  assert.equal(sink.result().content, "a \n b");
});

Deno.test("MessageSink has no content where white space beside a call was all there was", () => {
  const sink = new MessageSink();
  sink.content(" \n");
  sink.call(CALL, 1);
  sink.content("\n");
  sink.end();
  assert.equal(sink.result().content, null);
});

Deno.test("MessageSink trims newlines of reasoning, joins several by one, and drops white space behind", () => {
  const sink = new MessageSink();
  sink.reasoning("\n\n a\n");
  sink.reasoning("b \n");
  sink.reasoning("\n");
  sink.endReasoning();
  sink.reasoning("\n");
  sink.endReasoning();
  sink.reasoning("c");
  sink.endReasoning();
  sink.content("\n\n ");
  sink.content("d");
  sink.end();
  const { reasoning, content } = sink.result();
  assert.deepEqual([reasoning, content], [" a\nb \nc", "d"]);
});

Deno.test("MessageSink keeps the worst status and each problem once", () => {
  const sink = new MessageSink();
  sink.problem("unknown_tool");
  sink.problem("unknown_tool");
  sink.report("truncated");
  sink.report("malformed");
  assert.deepEqual(sink.result().parse, { status: "truncated", problems: ["unknown_tool"] });
});

Deno.test("MessageSink holds half a character back until the other half comes", () => {
  const sink = new MessageSink();
  sink.content("a\ud83d");
  assert.deepEqual(sink.take(), [{ type: "content", text: "a" }]);
  sink.content("\ude00");
  assert.deepEqual(sink.take(), [{ type: "content", text: "😀" }]);
  sink.reasoning("\ud83d");
  sink.endReasoning();
  sink.content("\ud83d");
  sink.call(CALL, 1);
  sink.end();
  assert.deepEqual([sink.result().reasoning, sink.result().content], ["\ud83d", "a😀\ud83d"]);
});
