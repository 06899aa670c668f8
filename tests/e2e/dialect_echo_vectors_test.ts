/**
 * The echo vectors through the endpoints: each recorded client's requests are sent as they were, with what our gateway
 * served in the place of what was served then, and the explanation must be the vectors'. A model can't say everything
 * that a stub can serve: which vectors that leaves out, and why, is part of the test.
 */

import assert from "node:assert/strict";
import {
  type EchoVector,
  readEchoVectors,
  type VectorExpectation,
  type VectorReply,
} from "../contracts/echo_vectors.ts";
import { post, stream } from "./dialect_client.ts";
import { type Body, sharedHarness } from "./harness.ts";
import { joinChunks } from "./join_chunks.ts";
import { joinMessage, joinResponse } from "./named_events.ts";

/** What the model says next, whatever it is asked. */
let nextReply = "";

const harness = sharedHarness({
  environment: { ENGINE_RETRY_S: "0" },
  engine: { script: { rules: [{ match: /[^]/, retrigger: true, completions: [() => nextReply] }] } },
});

const PATHS = { chat: "/v1/chat/completions", messages: "/v1/messages", responses: "/v1/responses" } as const;

/** Why a model can't say what was served. */
type Obstacle =
  | "arguments that are no JSON"
  | "call ids that were empty or used twice"
  | "calls where no tools are offered"
  | "white space alone beside a call";

/** Vectors with replies that no sampled text parses to. */
const LEFT_OUT: Readonly<Record<string, Obstacle>> = {
  "chat-bad_args-c01": "arguments that are no JSON",
  "chat-bad_args-c03": "arguments that are no JSON",
  "chat-bad_args-c06": "arguments that are no JSON",
  "chat-bad_args-c07": "arguments that are no JSON",
  "chat-blank_text-c01": "white space alone beside a call",
  "chat-blank_text-c11": "white space alone beside a call",
  "chat-call_ids-c03": "call ids that were empty or used twice",
  "chat-call_ids-c04": "call ids that were empty or used twice",
  "chat-call_ids-c07": "call ids that were empty or used twice",
  "chat-call_ids-c11": "call ids that were empty or used twice",
  "messages-bad_args-c02": "arguments that are no JSON",
  "messages-blank_text-c02": "white space alone beside a call",
  "responses-bad_args-c09": "arguments that are no JSON",
  "responses-blank_text-c09": "white space alone beside a call",
};

function obstacle(vector: EchoVector): Obstacle | null {
  const replies = vector.served.map(({ reply }) => reply);
  const calls = replies.flatMap((reply) => reply?.calls ?? []);
  if (calls.some((call) => !isObjectText(call.arguments))) return "arguments that are no JSON";
  if (hasUnusableIds(replies.filter((reply) => reply !== null))) return "call ids that were empty or used twice";
  const offersNone = (k: number) => ((vector.requests[k]!.body.tools ?? []) as unknown[]).length === 0;
  if (replies.some((reply, k) => offersNone(k) && (reply?.calls.length ?? 0) > 0)) {
    return "calls where no tools are offered";
  }
  return replies.some((reply) => reply?.text?.trim() === "") ? "white space alone beside a call" : null;
}

/** A reply that was served again is the same reply; for anything else an id is used once. */
function hasUnusableIds(replies: readonly VectorReply[]): boolean {
  const distinct = new Map(replies.map((reply) => [JSON.stringify(reply), reply.calls]));
  const ids = [...distinct.values()].flatMap((calls) => calls.map((call) => call.id));
  return ids.includes("") || new Set(ids).size < ids.length;
}

function isObjectText(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** A reply as text that parses to it, but for white space beside markup. */
function completionOf(reply: VectorReply): string {
  const reasoning = reply.reasoning === null ? "" : `<think>\n${reply.reasoning}</think>\n\n`;
  const calls = reply.calls.map((call) =>
    `<tool_call>\n{"name": ${JSON.stringify(call.name)}, "arguments": ${call.arguments}}\n</tool_call>`
  );
  return [reasoning + (reply.text ?? ""), ...calls].join("\n");
}

/** What came back, in no dialect; ids of items where the dialect has them. */
interface Served {
  readonly turn: number;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly arguments: string }[];
  readonly items: readonly string[];
}

/** Sends one request, as a stream where the client streamed. */
async function send(vector: EchoVector, key: string, body: Body): Promise<Served> {
  const sending = { path: PATHS[vector.dialect] };
  if (body.stream !== true) {
    const { status, body: answer, headers } = await post(harness(), key, body, sending);
    assert.equal(status, 200, JSON.stringify(answer));
    return servedBy(answer, Number(headers.get("x-verbatim-turn")));
  }
  if (vector.dialect === "chat") {
    const { message, turn } = joinChunks(await (await harness().stream(key, body)).rest());
    return servedBy({ choices: [{ message }] }, turn);
  }
  const { events } = await stream(harness(), key, body, sending);
  const answer = vector.dialect === "messages" ? joinMessage(events) : joinResponse(events);
  return servedBy(answer, events.findLast((event) => event.verbatim !== undefined).verbatim.turn);
}

/** Sends one request to an engine that fails. */
async function sendInVain(vector: EchoVector, key: string, body: Body): Promise<null> {
  const { faults } = harness().development.engine;
  faults.add({ fault: { kind: "http", status: 500 } });
  const { status } = await post(harness(), key, body, { path: PATHS[vector.dialect] });
  faults.clear();
  assert.equal(status, 502);
  return null;
}

function servedBy(answer: Body, turn: number): Served {
  if (answer.choices !== undefined) {
    const [{ message }] = answer.choices;
    const calls = (message.tool_calls ?? []).map((call: Body) => ({ id: call.id, ...call.function }));
    return { turn, text: message.content ?? "", reasoning: message.reasoning_content ?? "", calls, items: [] };
  }
  const parts: Body[] = answer.output ?? answer.content;
  const of = (type: string) => parts.filter((part) => part.type === type);
  const [thinking] = [...of("thinking"), ...of("reasoning")];
  const [text] = [...of("text"), ...of("message")];
  return {
    turn,
    text: text?.text ?? text?.content[0].text ?? "",
    reasoning: thinking?.thinking ?? thinking?.content?.[0].text ?? thinking?.summary[0].text ?? "",
    calls: [
      ...of("tool_use").map(({ id, input }) => ({ id, arguments: JSON.stringify(input) })),
      ...of("function_call").map((call) => ({ id: call.call_id, arguments: call.arguments })),
    ],
    items: parts.map((part) => part.id),
  };
}

/** What was served then, by what is served now: texts, reasoning and ids, as whole strings. */
class Replacements {
  readonly #by = new Map<string, string>();

  /** `served` by request. Where two replies were alike, the client means the one that the request relates to. */
  constructor(vector: EchoVector, request: number, served: readonly (Served | null)[]) {
    const path: number[] = [];
    for (let at = vector.expect[request]!.parent; at !== null; at = vector.expect[at]!.parent) path.unshift(at);
    for (const k of [...served.keys(), ...path]) {
      const now = served[k];
      if (now) this.#add(vector.served[k]!, now);
    }
  }

  #add({ reply, raw }: EchoVector["served"][number], served: Served): void {
    assert.ok(reply !== null);
    this.#text(reply.text ?? "", served.text);
    this.#text(reply.reasoning ?? "", served.reasoning);
    reply.calls.forEach((call, at) => this.#by.set(call.id, served.calls[at]!.id));
    itemIds(raw).forEach((id, at) => this.#by.set(id, served.items[at] ?? id));
  }

  /** A copy of the value with every string that was served replaced. */
  in(value: Body): Body {
    if (typeof value === "string") return this.#by.get(value) ?? value;
    if (Array.isArray(value)) return value.map((item) => this.in(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, this.in(inner)]));
  }

  #text(then: string, now: string): void {
    if (then === "") return;
    this.#by.set(then.trim(), now.trim());
    // Some clients trim one end alone.
    this.#by.set(then.trimEnd(), now.trimEnd());
    this.#by.set(then, now);
  }
}

/** The ids of the items of a Responses reply, in order. */
function itemIds(raw: Body): string[] {
  const events: Body[] = Array.isArray(raw) ? raw : [raw];
  const items = events.flatMap((event) =>
    event?.type === "response.output_item.done" ? [event.item] : event?.output ?? []
  );
  return items.map((item) => item.id);
}

/** Limits that the recorded stub did not keep. */
function withoutLimits({ max_tokens: _a, max_completion_tokens: _b, ...body }: Body): Body {
  return body;
}

/** What the explanation must say of a request, the turns of all requests being known. */
function wanted(expected: VectorExpectation, turns: readonly (number | null)[]): Body {
  const strict = expected.strict_echo ?? expected.append_only;
  return {
    relation: expected.relation,
    related_to: expected.parent === null ? null : turns[expected.parent],
    echo: expected.echo,
    echo_also: expected.echo_also ?? [],
    tools: expected.tools ?? "same",
    // White space around reasoning is no part of it here: there is nothing to trim.
    reasoning: expected.reasoning === "trimmed" ? "kept" : expected.reasoning ?? null,
    verdict: expected.append_only,
    strict_verdict: strict,
  };
}

function found(decision: Body): Body {
  const { relation, related_to, echo, echo_also, tools, reasoning, verdict, strict_verdict } = decision;
  return {
    relation,
    related_to,
    echo,
    echo_also: echo_also ?? [],
    tools: tools ?? "same",
    reasoning: reasoning ?? null,
    verdict,
    strict_verdict: strict_verdict ?? verdict,
  };
}

const vectors = readEchoVectors();

Deno.test("vectors that are left out hold replies that can't be sampled", () => {
  const left = vectors.flatMap((vector) => {
    const why = obstacle(vector);
    return why === null ? [] : [[vector.id, why]];
  });
  assert.deepEqual(Object.fromEntries(left), LEFT_OUT);
});

for (const vector of vectors.filter((candidate) => obstacle(candidate) === null)) {
  Deno.test(`GET explain gives the verdicts of ${vector.id}`, async () => {
    const { key, id } = await harness().createTask({ on_repeat: "resample" });
    const answers: (Served | null)[] = [];
    for (const [k, { body }] of vector.requests.entries()) {
      const { reply } = vector.served[k]!;
      const now = withoutLimits(new Replacements(vector, k, answers).in(body));
      if (reply === null) {
        answers.push(await sendInVain(vector, key, now));
        continue;
      }
      nextReply = completionOf(reply);
      const served = await send(vector, key, now);
      assert.deepEqual(
        [served.text.trim(), served.reasoning.trim(), served.calls.length],
        [(reply.text ?? "").trim(), (reply.reasoning ?? "").trim(), reply.calls.length],
      );
      answers.push(served);
    }
    const turns = answers.map((served) => served?.turn ?? null);
    await harness().admin("POST", `/tasks/${id}/finish`, {});
    const answered = vector.expect.filter((_, k) => turns[k] !== null);
    const decisions = await harness().decisions(id);
    assert.deepEqual(decisions.map(found), answered.map((expected) => wanted(expected, turns)));
  });
}
