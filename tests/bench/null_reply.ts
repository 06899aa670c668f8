/** The one reply of the null engine, as tokens of Qwen3's vocabulary and as the message they say. */

/** Text and one call, 32 tokens, then the token that ends a turn. */
export const NULL_REPLY_IDS: readonly number[] = [
  ...[40, 3278, 1349, 279, 1034, 1156, 11, 1221, 10279, 382, 151657, 198, 4913, 606, 788, 330],
  ...[878, 2458, 497, 330, 16370, 788, 5212, 2343, 788, 330, 3548, 10640, 15351, 7197, 95642, 151658],
  151645,
];

/** What the tokens decode to, the last one left out. */
export const NULL_REPLY_TEXT = "I'll read the file first, then decide.\n\n<tool_call>\n" +
  '{"name": "read_file", "arguments": {"path": "src/app/main.py"}}\n</tool_call>';

/** The message that a relay without a parser answers with: what the text says. */
export const NULL_REPLY_MESSAGE = {
  content: "I'll read the file first, then decide.",
  function: { name: "read_file", arguments: '{"path": "src/app/main.py"}' },
} as const;
