/** Streams whose events carry their type twice, read to the end; and the sequences of both APIs, checked and put together. */

import assert from "node:assert/strict";
import type { Body } from "./harness.ts";

/** A stream as it came. */
export interface NamedEvents {
  readonly status: number;
  readonly headers: Headers;
  readonly events: readonly Body[];
  readonly comments: number;
  /** With the end of the body, or with a broken connection. */
  readonly end: "closed" | "broken";
}

/** Reads a stream; every event's name must be its data's type. */
export async function readNamedEvents(response: Response): Promise<NamedEvents> {
  const { status, headers } = response;
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let end: NamedEvents["end"] = "closed";
  try {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true });
    text += decoder.decode();
  } catch (thrown) {
    if (thrown instanceof TypeError && thrown.message.includes("decode")) throw thrown;
    end = "broken";
  }
  const frames = text.split("\n\n");
  assert.equal(frames.pop(), "", "the last event is whole");
  let comments = 0;
  const events: Body[] = [];
  for (const frame of frames) {
    if (frame.startsWith(":")) {
      comments++;
      continue;
    }
    const [, name, data] = /^event: (.+)\ndata: (.+)$/.exec(frame) ?? [];
    assert.ok(name !== undefined && data !== undefined, frame);
    const event = JSON.parse(data);
    assert.equal(event.type, name);
    events.push(event);
  }
  return { status, headers, events, comments, end };
}

/** The types in order, runs of one type as one. */
export function typesOf(events: readonly Body[]): string[] {
  const types = events.map((event) => event.type === "content_block_delta" ? event.delta.type : event.type);
  return types.filter((type, k) => type !== types[k - 1]);
}

/** The message of a whole Messages stream, as its body would be. Fails where the sequence is not what the API promises. */
export function joinMessage(events: readonly Body[]): Body {
  const [start, ...rest] = events.filter((event) => event.type !== "ping");
  assert.equal(start.type, "message_start");
  const message = structuredClone(start.message);
  assert.deepEqual([message.content, message.stop_reason, message.stop_sequence], [[], null, null]);
  let open: Body | null = null;
  let json = "";
  for (const [k, event] of rest.entries()) {
    switch (event.type) {
      case "content_block_start":
        assert.equal(open, null, "one block at a time");
        assert.equal(event.index, message.content.length, "blocks are numbered in order");
        open = structuredClone(event.content_block);
        json = "";
        message.content.push(open);
        break;
      case "content_block_delta": {
        assert.equal(event.index, message.content.length - 1);
        const { delta } = event;
        if (delta.type === "text_delta") open.text += delta.text;
        else if (delta.type === "thinking_delta") open.thinking += delta.thinking;
        else if (delta.type === "signature_delta") open.signature += delta.signature;
        else if (delta.type === "input_json_delta") json += delta.partial_json;
        else assert.fail(delta.type);
        break;
      }
      case "content_block_stop":
        assert.equal(event.index, message.content.length - 1);
        if (open.type === "tool_use") open.input = JSON.parse(json);
        if (open.type === "thinking") assert.notEqual(open.signature, "");
        open = null;
        break;
      case "message_delta":
        assert.equal(open, null);
        assert.equal(k, rest.length - 2, "it is the last but one");
        Object.assign(message, event.delta, { usage: event.usage });
        break;
      default:
        assert.equal(event.type, "message_stop");
        assert.equal(k, rest.length - 1, "it is the last");
    }
  }
  assert.equal(rest.at(-1)?.type, "message_stop");
  return message;
}

/** Of each type of part: the names of its text's and of its own events, and the field that numbers it. */
const PARTS: Readonly<Record<string, readonly [text: string, part: string, index: string]>> = {
  output_text: ["response.output_text", "response.content_part", "content_index"],
  reasoning_text: ["response.reasoning_text", "response.content_part", "content_index"],
  summary_text: ["response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index"],
};

/** The response of a whole Responses stream. Fails where the sequence is not what the API promises. */
export function joinResponse(events: readonly Body[]): Body {
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, k) => k));
  const [created, inProgress, ...rest] = events;
  assert.deepEqual([created.type, inProgress.type], ["response.created", "response.in_progress"]);
  assert.deepEqual(created.response, inProgress.response);
  assert.deepEqual([created.response.status, created.response.output], ["in_progress", []]);
  const last = rest.pop();
  const items: Body[] = [];
  let k = 0;
  const next = (type: string): Body => {
    const event = rest[k++];
    assert.equal(event?.type, type);
    assert.equal(event.output_index, items.length);
    return event;
  };
  while (k < rest.length) items.push(joinItem(next, () => rest[k]?.type));
  assert.deepEqual(last.response.output, items);
  assert.equal(last.response.id, created.response.id);
  assert.equal(last.type, `response.${last.response.status}`);
  return last.response;
}

function joinItem(next: (type: string) => Body, peek: () => string | undefined): Body {
  const { item } = next("response.output_item.added");
  assert.equal(item.status, "in_progress");
  if (item.type === "function_call") {
    assert.equal(item.arguments, "");
    let text = "";
    do {
      const event = next("response.function_call_arguments.delta");
      assert.equal(event.item_id, item.id);
      text += event.delta;
    } while (peek() === "response.function_call_arguments.delta");
    const done = next("response.function_call_arguments.done");
    assert.deepEqual([done.item_id, done.arguments], [item.id, text]);
    const whole = next("response.output_item.done").item;
    assert.deepEqual(whole, { ...item, status: "completed", arguments: text });
    return whole;
  }
  assert.deepEqual([...item.content ?? [], ...item.summary ?? []], []);
  const added = next(peek() ?? "a part");
  const [name, part, index] = PARTS[added.part.type]!;
  assert.equal(added.type, `${part}.added`);
  assert.equal(added.part.text, "");
  let text = "";
  while (peek() === `${name}.delta`) {
    const event = next(`${name}.delta`);
    assert.deepEqual([event.item_id, event[index]], [item.id, 0]);
    assert.notEqual(event.delta, "");
    text += event.delta;
  }
  const done = next(`${name}.done`);
  assert.deepEqual([done.item_id, done[index], done.text], [item.id, 0, text]);
  const partDone = next(`${part}.done`);
  assert.deepEqual(partDone.part, { ...added.part, text });
  const whole = next("response.output_item.done").item;
  assert.equal(whole.id, item.id);
  assert.deepEqual([...whole.content ?? [], ...whole.summary ?? []], [partDone.part]);
  return whole;
}
