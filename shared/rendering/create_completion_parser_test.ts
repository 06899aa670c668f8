import assert from "node:assert/strict";
import {
  type AccountedParser,
  createCompletionParser,
  isReasoningParser,
  isToolCallParser,
} from "./create_completion_parser.ts";
import type { ParsedCompletion, ParseDelta } from "../ports/completion_parser.ts";
import type { Json, ToolDefinition } from "../core/message.ts";

interface Vector {
  readonly id: string;
  readonly tool_call_parser: string | null;
  readonly reasoning_parser: string | null;
  readonly prompt_opens_reasoning: boolean;
  readonly tools: readonly { readonly function: { readonly name: string; readonly parameters?: Json } }[];
  readonly tool_choice?: "auto" | "none" | "required";
  readonly text: string;
  readonly expect: {
    readonly reasoning: string | null;
    readonly content: string | null;
    readonly tool_calls: readonly { readonly name: string; readonly arguments: string }[];
    readonly arguments_compare: "bytes" | "json";
    readonly parse: { readonly status: string; readonly problems: readonly string[] };
  };
}

const FOLDER = new URL("../../tests/fixtures/vectors/parsers/", import.meta.url);
const SPLITS_PER_VECTOR = 20;

function readVectors(): Vector[] {
  const files = [...Deno.readDirSync(FOLDER)].map((entry) => entry.name).filter((name) => name.endsWith(".json"))
    .sort();
  return files.flatMap((name): Vector[] => JSON.parse(Deno.readTextFileSync(new URL(name, FOLDER))));
}

function parserOf(vector: Vector): AccountedParser {
  return createCompletionParser({
    toolCallParser: vector.tool_call_parser,
    reasoningParser: vector.reasoning_parser,
    tools: vector.tools.map((tool): ToolDefinition => ({ ...tool.function, raw: {} })),
    toolChoice: vector.tool_choice ?? "auto",
    opensReasoning: vector.prompt_opens_reasoning,
  });
}

/** Feeds the pieces and checks that the joined deltas and the accounting agree with the result. */
function parse(vector: Vector, pieces: readonly string[]): ParsedCompletion {
  const parser = parserOf(vector);
  const deltas: ParseDelta[] = [];
  for (const piece of pieces) deltas.push(...parser.push(piece));
  deltas.push(...parser.finish());
  const result = parser.result();
  const reasoning = deltas.map((delta) => delta.type === "reasoning" ? delta.text : "").join("");
  const content = deltas.map((delta) => delta.type === "content" ? delta.text : "").join("");
  const calls = deltas.flatMap((delta) =>
    delta.type === "tool_call" ? [{ name: delta.name, arguments: delta.arguments }] : []
  );
  assert.deepEqual([reasoning, content, calls], [result.reasoning ?? "", result.content ?? "", result.toolCalls]);
  return result;
}

/** A generator of numbers in [0, 1) that is the same in every run (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function splitRandomly(text: string, random: () => number): string[] {
  const pieces: string[] = [];
  const averageLength = 1 + random() * 20;
  let from = 0;
  while (from < text.length) {
    const to = Math.min(text.length, from + 1 + Math.floor(random() * 2 * averageLength));
    pieces.push(text.slice(from, to));
    from = to;
  }
  return pieces;
}

function check(vector: Vector, result: ParsedCompletion): void {
  const { expect } = vector;
  const isBytes = expect.arguments_compare === "bytes";
  assert.deepEqual(
    {
      reasoning: result.reasoning,
      content: result.content,
      calls: result.toolCalls.map((call) => [call.name, isBytes ? call.arguments : orderedJson(call.arguments)]),
      status: result.parse.status,
      problems: [...result.parse.problems].sort(),
    },
    {
      reasoning: expect.reasoning,
      content: expect.content,
      calls: expect.tool_calls.map((call) => [call.name, isBytes ? call.arguments : orderedJson(call.arguments)]),
      status: expect.parse.status,
      problems: [...expect.parse.problems].sort(),
    },
  );
}

function orderedJson(json: string): string {
  return JSON.stringify(JSON.parse(json));
}

for (const vector of readVectors()) {
  const { tool_call_parser: tool, reasoning_parser: reasoning } = vector;
  if ((tool !== null && !isToolCallParser(tool)) || (reasoning !== null && !isReasoningParser(reasoning))) continue;
  Deno.test(`createCompletionParser reads ${vector.id} as the rules decide, however it is cut`, () => {
    const whole = parse(vector, [vector.text]);
    check(vector, whole);
    assert.deepEqual(parse(vector, vector.text.split("")), whole);
    const random = randomFrom(vector.id.length * 7919 + vector.text.length);
    for (let round = 0; round < SPLITS_PER_VECTOR; round++) {
      assert.deepEqual(parse(vector, splitRandomly(vector.text, random)), whole);
    }
  });
}
