import assert from "node:assert/strict";
import fc from "fast-check";
import { eventLoopTurn } from "../../../tests/fixtures/fake_clock.ts";
import { TokenSeries } from "../../core/token_series.ts";
import { type Answer, type CallEvent, SharedCall, type Waiter, wholeAnswer } from "./shared_call.ts";

const STARTED: CallEvent = { type: "started", answerId: "a", createdAtS: 1, model: "m", promptTokens: 3 };

const ANSWER: Answer = {
  turn: 0,
  answerId: "a",
  createdAtS: 1,
  model: "m",
  reply: { role: "assistant", source: -1, content: "x", reasoning: null, toolCalls: [], form: "" },
  finishReason: "stop",
  stopString: null,
  promptTokens: 1,
  cachedTokens: null,
  reasoningTokens: null,
  prompt: TokenSeries.EMPTY,
  completionTokens: 1,
  completion: Uint32Array.of(1),
  logprobs: [-1],
  topLogprobs: null,
};
const END: CallEvent = { type: "end", answer: ANSWER };

function content(text: string): CallEvent {
  return { type: "delta", delta: { type: "content", text } };
}

async function eventsOf(waiter: Waiter): Promise<CallEvent[]> {
  const events: CallEvent[] = [];
  for await (const event of waiter) events.push(event);
  return events;
}

Deno.test("SharedCall shows every waiter every event in order, whenever it joins", async () => {
  const schedule = fc.array(fc.oneof(fc.constant("join"), fc.constant("turn"), fc.string()), { maxLength: 20 });
  await fc.assert(fc.asyncProperty(schedule, async (steps) => {
    const call = new SharedCall();
    const sent: CallEvent[] = [STARTED];
    const waiting = [eventsOf(call.join({ streaming: true }))];
    call.emit(STARTED);
    for (const step of steps) {
      if (step === "join") waiting.push(eventsOf(call.join({ streaming: false })));
      else if (step === "turn") await eventLoopTurn();
      else call.emit(content(step)), sent.push(content(step));
    }
    call.emit(END);
    waiting.push(eventsOf(call.join({ streaming: true })));
    for (const events of await Promise.all(waiting)) assert.deepEqual(events, [...sent, END]);
    assert.equal(call.signal.aborted, false, "an ended call is not aborted when its waiters leave");
  }));
});

Deno.test("SharedCall is aborted when its last waiter leaves, not before", async () => {
  const call = new SharedCall();
  const first = call.join({ streaming: true });
  const second = call.join({ streaming: true });
  const following = eventsOf(second);
  first.leave();
  first.leave();
  assert.equal(call.signal.aborted, false, "leaving twice counts once");
  call.emit(STARTED);
  await eventLoopTurn();
  second.leave();
  assert.ok(call.signal.aborted);
  assert.equal(call.signal.reason.name, "AbortError");
  call.fail(call.signal.reason);
  await assert.rejects(following, { name: "AbortError" });
});

Deno.test("SharedCall goes on for one who joined when the first caller leaves", async () => {
  const call = new SharedCall();
  const first = call.join({ streaming: true });
  const iterator = first[Symbol.asyncIterator]();
  call.emit(STARTED);
  await iterator.next();
  const joiner = eventsOf(call.join({ streaming: false }));
  await iterator.return?.();
  assert.equal(call.signal.aborted, false);
  call.emit(END);
  assert.deepEqual(await joiner, [STARTED, END]);
});

Deno.test("SharedCall gives a failure to everyone, after what was sent before it", async () => {
  const call = new SharedCall();
  const failure = new Error("failed");
  const seen: CallEvent[] = [];
  async function follow(waiter: Waiter): Promise<void> {
    for await (const event of waiter) seen.push(event);
  }
  const early = follow(call.join({ streaming: true }));
  call.emit(STARTED);
  call.fail(failure);
  const late = follow(call.join({ streaming: true }));
  await assert.rejects(early, failure);
  await assert.rejects(late, failure);
  assert.deepEqual(seen, [STARTED, STARTED]);
  call.emit(END);
  await assert.rejects(follow(call.join({ streaming: true })), failure, "what comes after a failure does not count");
  assert.equal(call.signal.aborted, false);
});

Deno.test("SharedCall ends once: neither another event nor a failure comes after the end", async () => {
  const call = new SharedCall();
  call.emit(END);
  call.emit(content("late"));
  call.fail(new Error("late"));
  assert.deepEqual(await eventsOf(call.join({ streaming: true })), [END]);
});

Deno.test("SharedCall.cancel aborts with its reason, whoever waits", () => {
  const call = new SharedCall();
  call.join({ streaming: true });
  const reason = new Error("closed");
  call.cancel(reason);
  assert.equal(call.signal.reason, reason);
});

Deno.test("SharedCall takes its events back until a streaming client was given a part, the end aside", async () => {
  const whole = new SharedCall();
  whole.emit(STARTED);
  whole.emit(END);
  await eventsOf(whole.join({ streaming: false }));
  assert.ok(whole.takeBack());
  const ended = new SharedCall();
  ended.emit(END);
  await eventsOf(ended.join({ streaming: true }));
  assert.ok(ended.takeBack());
  const shown = new SharedCall();
  shown.emit(STARTED);
  shown.emit(END);
  await eventsOf(shown.join({ streaming: true }));
  assert.equal(shown.takeBack(), false);
});

Deno.test("SharedCall shows nobody a part of events that were taken back", async () => {
  const call = new SharedCall();
  const whole = eventsOf(call.join({ streaming: false }));
  call.emit(STARTED);
  call.emit(content("one answer"));
  await eventLoopTurn();
  assert.ok(call.takeBack());
  const streaming = eventsOf(call.join({ streaming: true }));
  await eventLoopTurn();
  const other = [{ ...STARTED, answerId: "b" }, content("another"), END];
  for (const event of other) call.emit(event);
  assert.deepEqual(await streaming, other);
  assert.deepEqual((await whole).slice(-3), other);
  assert.deepEqual(await eventsOf(call.join({ streaming: true })), other);
});

Deno.test("wholeAnswer waits for the end", async () => {
  const call = new SharedCall();
  const answer = wholeAnswer(call.join({ streaming: false }), new AbortController().signal);
  call.emit(STARTED);
  call.emit(END);
  assert.equal(await answer, ANSWER);
});

Deno.test("wholeAnswer ends with its client: with the signal's reason, leaving the call", async () => {
  for (const before of [true, false]) {
    const call = new SharedCall();
    const client = new AbortController();
    const reason = new Error("gone");
    if (before) client.abort(reason);
    const answer = wholeAnswer(call.join({ streaming: false }), client.signal);
    call.emit(STARTED);
    client.abort(reason);
    await assert.rejects(answer, reason);
    assert.ok(call.signal.aborted);
    call.fail(new Error("aborted"));
    await eventLoopTurn();
  }
});

Deno.test("wholeAnswer leaves the generation to those who still wait", async () => {
  const call = new SharedCall();
  const other = wholeAnswer(call.join({ streaming: false }), new AbortController().signal);
  await assert.rejects(wholeAnswer(call.join({ streaming: false }), AbortSignal.abort()), { name: "AbortError" });
  assert.equal(call.signal.aborted, false);
  call.emit(END);
  assert.equal(await other, ANSWER);
});
