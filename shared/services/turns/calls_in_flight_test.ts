import assert from "node:assert/strict";
import { requestUnits } from "../../core/request_units.ts";
import { conversationOf, type Written } from "../../../tests/fixtures/conversations.ts";
import { CallsInFlight, type LocalCall } from "./calls_in_flight.ts";
import { SharedCall } from "./shared_call.ts";

function callOf(callId: string, digest: string, lines: readonly Written[] = []): LocalCall & { end(): Promise<void> } {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  return {
    callId,
    digest,
    call: new SharedCall(),
    units: requestUnits(conversationOf(lines)),
    ended,
    async end() {
      resolve();
      await ended;
      await Promise.resolve();
    },
  };
}

Deno.test("CallsInFlight holds calls by task until they have ended", async () => {
  const calls = new CallsInFlight();
  const [a, b, other] = [callOf("a", "1"), callOf("b", "1"), callOf("c", "1")];
  calls.add("task", a);
  calls.add("task", b);
  calls.add("other", other);
  assert.deepEqual([calls.count("task"), calls.count("other"), calls.count("none"), calls.total], [2, 1, 0, 3]);
  assert.deepEqual(calls.of("task"), [a, b]);
  await a.end();
  assert.deepEqual(calls.of("task"), [b]);
  await b.end();
  await other.end();
  assert.deepEqual([calls.of("task"), calls.count("task"), calls.total], [[], 0, 0]);
  const late = callOf("d", "2");
  calls.add("task", late);
  assert.deepEqual(calls.of("task"), [late]);
});

Deno.test("CallsInFlight.find gives the call that answers a request, unless it is aborted", () => {
  const calls = new CallsInFlight();
  const [gone, running, other] = [callOf("a", "1"), callOf("b", "1"), callOf("c", "2")];
  for (const local of [gone, running, other]) calls.add("task", local);
  assert.equal(calls.find("task", "1"), gone);
  gone.call.cancel(new Error("gone"));
  assert.equal(calls.find("task", "1"), running);
  assert.equal(calls.find("task", "2"), other);
  assert.equal(calls.find("task", "3"), null);
  assert.equal(calls.find("none", "1"), null);
});

Deno.test("CallsInFlight.answering gives the calls whose answer a request goes on from, once a part of it was shown", async () => {
  const calls = new CallsInFlight();
  const running = callOf("a", "1", ["s:system", "u:one"]);
  for (const local of [running, callOf("b", "2", ["s:system", "u:other"])]) calls.add("task", local);
  const answering = (...lines: Written[]) => calls.answering("task", requestUnits(conversationOf(lines)));
  const goesOn: Written[] = ["s:system", "u:one", "a:echo", "u:two"];
  assert.deepEqual(answering(...goesOn), []);
  running.call.emit({ type: "delta", delta: { type: "content", text: "ec" } });
  await running.call.join({ streaming: true })[Symbol.asyncIterator]().next();
  assert.deepEqual(answering(...goesOn), [running]);
  assert.deepEqual(answering("s:system", "u:one"), [], "the same request");
  assert.deepEqual(answering("s:system", "u:one", "u:two"), [], "nothing stands where its answer belongs");
  assert.deepEqual(calls.answering("other", requestUnits(conversationOf(goesOn))), []);
});
