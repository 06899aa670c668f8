import assert from "node:assert/strict";
import fc from "fast-check";
import { parsePieces, parserOptions, randomFrom, splitRandomly } from "../../tests/fixtures/parse_completion.ts";
import { REASONING_SAMPLES, TOOL_CALL_SAMPLES } from "../../tests/fixtures/parser_samples.ts";
import { optionsOf, readParserVectors } from "../../tests/fixtures/parser_vectors.ts";
import type { CompletionParserOptions } from "./create_completion_parser.ts";

const RUNS_PER_FORMAT = 60;
const MUTATIONS_PER_VECTOR = 12;

/** The reasoning format that belongs to a tool-call format, where they share markers. */
const COMPANIONS: Readonly<Record<string, string>> = {
  "gpt-oss": "gpt-oss",
  apertus2509: "apertus2509",
  cohere_command4: "cohere_command4",
  gemma4: "gemma4",
  inkling: "inkling",
  kimi_k3: "kimi_k3",
  mistral: "mistral",
  muse: "muse",
};

/** The markers and other pieces that a format's samples are made of. */
function fragmentsOf(texts: readonly string[]): string[] {
  const pieces = texts.flatMap((text) =>
    text.split(/(<[^<>]*>|\[[A-Z_]+\]|\]<\]minimax\[>\[|◁[^▷]*▷|[{}[\](),:="'`\n ])/)
  );
  return [...new Set(pieces)].filter((piece) => piece.length > 0);
}

/** Texts made of a format's pieces, whole samples and whatever else. */
function textOf(fragments: readonly string[], samples: readonly string[]): fc.Arbitrary<string> {
  const piece = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...fragments) },
    { weight: 2, arbitrary: fc.constantFrom(...samples) },
    { weight: 2, arbitrary: fc.string({ unit: "grapheme", maxLength: 6 }) },
    { weight: 1, arbitrary: fc.constantFrom("\n", "  ", "\\", '\\"', "😀", "</think>", "<think>") },
  );
  return fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join(""));
}

/** What must hold for any text, however it is cut. */
function checkText(options: CompletionParserOptions, text: string, seed: number): void {
  const { result } = parsePieces(options, [text]);
  assert.deepEqual(parsePieces(options, text.split("")).result, result);
  assert.deepEqual(parsePieces(options, splitRandomly(text, randomFrom(seed))).result, result);
  // This one puts a marker in front.
  const source = options.reasoningParser === "minimax-append-think" ? `<think>${text}` : text;
  assert.ok(isWithin(result.content ?? "", source), "content is not in the text");
  assert.ok(isWithin(result.reasoning ?? "", text), "reasoning is not in the text");
  for (const call of result.toolCalls) {
    const value: unknown = JSON.parse(call.arguments);
    assert.ok(typeof value === "object" && value !== null && !Array.isArray(value));
    assert.ok(call.name.length > 0);
  }
}

/** Whether the characters of `part`, newlines aside, come in `whole` in this order. */
function isWithin(part: string, whole: string): boolean {
  let position = 0;
  for (const character of part) {
    if (character === "\n") continue;
    const found = whole.indexOf(character, position);
    if (found < 0) return false;
    position = found + character.length;
  }
  return true;
}

for (const { names, good, malformed, truncated } of TOOL_CALL_SAMPLES) {
  const [toolCallParser = ""] = names;
  const reasoningParser = COMPANIONS[toolCallParser] ?? "qwen3";
  const reasoning = REASONING_SAMPLES.filter((sample) => sample.names.includes(reasoningParser));
  const samples = [good, malformed, truncated];
  const fragments = fragmentsOf([...samples, ...reasoning.map((sample) => sample.good)]);

  Deno.test(`any text of ${toolCallParser} pieces is read alike however it is cut, and none of it is lost`, () => {
    fc.assert(
      fc.property(textOf(fragments, samples), fc.boolean(), fc.boolean(), fc.nat(), (text, splits, isOpen, seed) => {
        const parsers = { toolCallParser, reasoningParser: splits ? reasoningParser : null };
        checkText(parserOptions({ ...parsers, opensReasoning: isOpen }), text, seed);
      }),
      { numRuns: RUNS_PER_FORMAT },
    );
  });
}

for (const { names, good, stray, truncated } of REASONING_SAMPLES) {
  const [reasoningParser = ""] = names;
  const samples = [good, stray, truncated];

  Deno.test(`any text of ${reasoningParser} reasoning pieces is read alike however it is cut`, () => {
    fc.assert(
      fc.property(textOf(fragmentsOf(samples), samples), fc.boolean(), fc.nat(), (text, opensReasoning, seed) => {
        checkText(parserOptions({ reasoningParser, opensReasoning }), text, seed);
      }),
      { numRuns: RUNS_PER_FORMAT },
    );
  });
}

Deno.test("any text without a marker's first character is an answer, byte for byte", () => {
  const text = fc.string({ unit: "grapheme" }).filter((value) => !/[<[\]{◁]|function call/.test(value));
  for (const { names } of TOOL_CALL_SAMPLES) {
    const [toolCallParser = ""] = names;
    fc.assert(
      fc.property(text, (value) => {
        const { result } = parsePieces(parserOptions({ toolCallParser }), [value]);
        assert.equal(result.content ?? "", value);
        assert.equal(result.parse.status, "ok");
      }),
      { numRuns: 20 },
    );
  }
});

/** A text with a few characters taken out, doubled, or replaced by a piece of another. */
function mutate(text: string, other: string, random: () => number): string {
  const at = Math.floor(random() * (text.length + 1));
  const length = Math.floor(random() * 24);
  const from = Math.floor(random() * other.length);
  switch (Math.floor(random() * 5)) {
    case 0:
      return text.slice(0, at) + text.slice(at + length);
    case 1:
      return text.slice(0, at) + other.slice(from, from + 2 * length) + text.slice(at);
    case 2:
      return text.slice(0, at) + text.slice(Math.max(0, at - length));
    case 3:
      return text.slice(0, at);
    default:
      return text + other;
  }
}

Deno.test("mutated vectors are read alike however they are cut, without an error", () => {
  const vectors = readParserVectors();
  const random = randomFrom(20260817);
  for (const [index, vector] of vectors.entries()) {
    const options = optionsOf(vector);
    for (let round = 0; round < MUTATIONS_PER_VECTOR; round++) {
      const other = vectors[(index + round) % vectors.length]?.text ?? "";
      let text = vector.text;
      for (let changes = 1 + Math.floor(random() * 3); changes > 0; changes--) text = mutate(text, other, random);
      checkText({ ...options, opensReasoning: random() < 0.3 }, text, round);
    }
  }
});
