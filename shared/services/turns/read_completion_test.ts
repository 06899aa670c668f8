import assert from "node:assert/strict";
import fc from "fast-check";
import { qwen3Tokenizer } from "../../../tests/fixtures/qwen3_tokenizer.ts";
import type { CompletionParser, ParseDelta } from "../../ports/completion_parser.ts";
import type { Finish } from "../../core/turn.ts";
import { createCompletionParser } from "../../rendering/create_completion_parser.ts";
import { CompletionReader, type ReadPiece } from "./read_completion.ts";

const tokenizer = await qwen3Tokenizer();
const IM_END = 151645;
const END_OF_TEXT = 151643;

/** All text is content; it holds a call where it says CALL. */
class PlainParser implements CompletionParser {
  #text = "";

  push(text: string): ParseDelta[] {
    this.#text += text;
    return [{ type: "content", text }];
  }

  finish(): ParseDelta[] {
    return [];
  }

  result(): ReturnType<CompletionParser["result"]> {
    return {
      reasoning: null,
      content: this.#text === "" ? null : this.#text,
      toolCalls: this.#text.includes("CALL") ? [{ name: "f", arguments: "{}" }] : [],
      parse: { status: "ok", problems: [] },
    };
  }

  reasoningSpans(): ReturnType<CompletionParser["reasoningSpans"]> {
    return [];
  }
}

function readerOf(stopStrings: string[] = []): CompletionReader {
  const stopTokenIds = new Set([IM_END, END_OF_TEXT]);
  return new CompletionReader({ decoder: tokenizer.decoder(), parser: new PlainParser(), stopTokenIds, stopStrings });
}

/** Pushes ids cut at these places, each with its index as logprob; all pieces, and the end. */
function read(
  ids: readonly number[],
  options: { finish: Finish; cuts?: readonly number[]; stops?: string[] },
): { pieces: ReadPiece[]; end: ReturnType<CompletionReader["finish"]> } {
  const reader = readerOf(options.stops);
  const cuts = (options.cuts ?? []).map((cut) => cut % (ids.length + 1)).sort((a, b) => a - b);
  const logprobs = ids.map((_, index) => -index);
  const pieces: ReadPiece[] = [];
  [...cuts, ids.length].reduce((from, to) => {
    pieces.push(reader.push(ids.slice(from, to), logprobs.slice(from, to)));
    return to;
  }, 0);
  assert.equal(reader.length, ids.length);
  return { pieces, end: reader.finish(options.finish) };
}

function encode(text: string): number[] {
  return [...tokenizer.encode(text)];
}

const cuts = fc.array(fc.nat(), { maxLength: 6 });
const words = fc.array(fc.constantFrom("a", " word", "é", "日本", "👩‍🚀", "\n", "CALL", "<tool_call>", " ST", "OP"), {
  maxLength: 12,
}).map((list) => list.join(""));

Deno.test("CompletionReader gives text and deltas that join to the whole, ids and logprobs as they came", () => {
  fc.assert(fc.property(words, cuts, fc.boolean(), (text, at, closes) => {
    const ids = closes ? [...encode(text), IM_END] : encode(text);
    const finish: Finish = closes ? { type: "stop", matched: IM_END } : { type: "length" };
    const { pieces, end } = read(ids, { finish, cuts: at });
    const { completion } = end;
    const all = [...pieces, end];
    assert.equal(all.map((piece) => piece.text).join(""), text);
    assert.equal(
      all.flatMap((piece) => piece.deltas).map((delta) => delta.type === "content" ? delta.text : "?").join(""),
      text,
    );
    assert.equal(completion.text, text);
    assert.equal(completion.parsed.content, text === "" ? null : text);
    assert.deepEqual([...completion.ids], ids);
    assert.deepEqual(completion.logprobs, ids.map((_, index) => -index));
    assert.equal(completion.closed, closes);
    assert.deepEqual(completion.finish, finish);
  }));
});

Deno.test("CompletionReader never gives half a character", () => {
  const ids = encode("👩‍🚀🦖日");
  assert.ok(ids.length > 4);
  const reader = readerOf();
  let text = "";
  for (const id of ids) {
    text += reader.push([id], [-1]).text;
    assert.ok(!text.includes("\ufffd") && "👩‍🚀🦖日".startsWith(text));
  }
  assert.equal(text, "👩‍🚀🦖日");
});

Deno.test("CompletionReader ends an incomplete character as a whole decode does, stop token or not", () => {
  const half = encode("𓀀").slice(0, -1);
  const text = tokenizer.decode(half);
  assert.match(text, /\ufffd/);
  assert.equal(read(half, { finish: { type: "length" } }).end.completion.text, text);
  const stopped = read([...half, IM_END], { finish: { type: "stop", matched: IM_END } }).end.completion;
  assert.equal(stopped.text, text);
  assert.ok(stopped.closed);
});

Deno.test("CompletionReader drops the final stop token by its id, and keeps the same text that was spelled", () => {
  const spelled = "a <|im_end| >";
  const { completion } =
    read([...encode(spelled), END_OF_TEXT], { finish: { type: "stop", matched: END_OF_TEXT } }).end;
  assert.equal(completion.text, spelled);
  const nothing = read([IM_END], { finish: { type: "stop", matched: IM_END } }).end.completion;
  assert.deepEqual([nothing.text, nothing.parsed.content, nothing.ids.length], ["", null, 1]);
});

Deno.test("CompletionReader keeps a stop token that did not end the generation as text", () => {
  const ids = [...encode("a"), IM_END, ...encode("b"), IM_END, IM_END];
  fc.assert(fc.property(cuts, (at) => {
    const stopped = read(ids, { finish: { type: "stop", matched: IM_END }, cuts: at }).end.completion;
    assert.equal(stopped.text, "a<|im_end|>b<|im_end|>");
    const long = read(ids, { finish: { type: "length" }, cuts: at }).end.completion;
    assert.equal(long.text, "a<|im_end|>b<|im_end|><|im_end|>");
    assert.equal(long.closed, false);
  }));
});

Deno.test("CompletionReader cuts the text before the stop string that ended it, however it was cut", () => {
  const stops = ["STOP", "OPEN"];
  fc.assert(fc.property(words, words, cuts, (before, after, at) => {
    const text = `${before} STOP${after}`;
    const ids = encode(text);
    const { pieces, end } = read(ids, { finish: { type: "stop", matched: "STOP" }, cuts: at, stops });
    assert.equal(end.completion.text, text.slice(0, text.indexOf("STOP")));
    assert.equal([...pieces, end].map((piece) => piece.text).join(""), end.completion.text);
    assert.equal(end.completion.closed, false);
    const whole = read(ids, { finish: { type: "length" }, cuts: at, stops }).end.completion;
    assert.equal(whole.text, text, "what did not end the generation is text");
  }));
});

Deno.test("CompletionReader says tool_calls of a stop with a call alone", () => {
  const reason = (text: string, finish: Finish) => read(encode(text), { finish }).end.completion.finishReason;
  assert.equal(reason("CALL", { type: "stop", matched: null }), "tool_calls");
  assert.equal(reason("CALL", { type: "length" }), "length");
  assert.equal(reason("text", { type: "stop", matched: null }), "stop");
  assert.equal(reason("text", { type: "length" }), "length");
  const cut =
    read(encode("a STOP CALL"), { finish: { type: "stop", matched: "STOP" }, stops: ["STOP"] }).end.completion;
  assert.equal(cut.finishReason, "stop", "a call behind the stop string is none");
});

/** Reads text as a thinking model's, some tokens at a time; the tokens inside reasoning. */
function reasoningTokens(text: string, options: { piece: number; opensReasoning?: boolean }): number {
  const reader = new CompletionReader({
    decoder: tokenizer.decoder(),
    parser: createCompletionParser({
      toolCallParser: "qwen25",
      reasoningParser: "qwen3",
      tools: [],
      toolChoice: "auto",
      opensReasoning: options.opensReasoning ?? false,
    }),
    stopTokenIds: new Set([IM_END]),
    stopStrings: [],
  });
  const ids = [...encode(text), IM_END];
  for (let at = 0; at < ids.length; at += options.piece) {
    const piece = ids.slice(at, at + options.piece);
    reader.push(piece, piece.map(() => 0));
  }
  return reader.finish({ type: "stop", matched: IM_END }).completion.reasoningTokens;
}

Deno.test("CompletionReader counts the tokens inside reasoning, however they came", () => {
  for (const inside of ["", "short", "\nA longer thought, 🦕 and 漢字.\n", "one\n\ntwo"]) {
    const expected = encode(inside).length;
    for (const piece of [1, 3, 1000]) {
      assert.equal(reasoningTokens(`<think>${inside}</think>\n\nAn answer.`, { piece }), expected, inside);
      assert.equal(reasoningTokens(`${inside}</think>An answer.`, { piece, opensReasoning: true }), expected, inside);
      assert.equal(reasoningTokens(`<think>${inside}`, { piece }), expected, inside);
    }
  }
  assert.equal(reasoningTokens("No thought at all.", { piece: 2 }), 0);
});
