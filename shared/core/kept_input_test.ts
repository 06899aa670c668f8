import assert from "node:assert/strict";
import fc from "fast-check";
import { keepInput, type KeptInput, keptMessages } from "./kept_input.ts";
import type { Message } from "./message.ts";
import type { Turn } from "./turn.ts";

function user(content: string, source: number): Message {
  return { role: "user", content, source };
}

/** Turns of which only the kept input is looked at. */
function turnsOf(inputs: readonly (KeptInput | undefined)[]): Turn[] {
  return inputs.map((input, turn) => {
    const detail = { reply: { role: "assistant", content: "", reasoning: null, toolCalls: [], form: "", source: -1 } };
    return JSON.parse(JSON.stringify({ record: { turn }, detail: { ...detail, ...(input && { input }) } }));
  });
}

Deno.test("keptMessages gives every conversation back, whatever it shares with which earlier one", () => {
  const conversation = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 6 });
  const requests = fc.array(fc.record({ texts: conversation, parent: fc.nat() }), { minLength: 1, maxLength: 8 });
  fc.assert(fc.property(requests, (asked) => {
    const kept: KeptInput[] = [];
    const conversations = asked.map(({ texts }) => texts.map(user));
    conversations.forEach((messages, turn) => {
      const parent = turn === 0 ? null : asked[turn]!.parent % turn;
      kept.push(keepInput(messages, turnsOf(kept), parent));
    });
    const turns = turnsOf(kept);
    conversations.forEach((messages, turn) => assert.deepEqual(keptMessages(turns, turn), messages));
  }));
});

Deno.test("keepInput keeps what an earlier request does not hold, once", () => {
  const first = [user("a", 0), user("b", 1)];
  const turns = turnsOf([keepInput(first, [], null)]);
  assert.deepEqual(keepInput([...first, user("c", 2)], turns, 0), {
    shared: { turn: 0, messages: 2 },
    messages: [user("c", 2)],
  });
});

Deno.test("keptMessages is null for a turn whose conversation was not kept", () => {
  const turns = turnsOf([undefined, keepInput([user("a", 0)], turnsOf([undefined]), 0)]);
  assert.equal(keptMessages(turns, 0), null);
  assert.equal(keptMessages(turns, 7), null);
  assert.deepEqual(keptMessages(turns, 1), [user("a", 0)]);
});
