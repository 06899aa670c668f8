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

/** Where a stream of the reply is cut: so many tokens, and so many characters of text that they decode to. */
export const NULL_REPLY_CUTS: readonly { readonly tokens: number; readonly characters: number }[] = [
  { tokens: 8, characters: 30 },
  { tokens: 16, characters: 62 },
  { tokens: 24, characters: 93 },
  { tokens: NULL_REPLY_IDS.length, characters: NULL_REPLY_TEXT.length },
];

const SAID = "I'll read the file first, then decide.";
const CALL = { name: "read_file", arguments: '{"path": "src/app/main.py"}' } as const;
const CALL_ID_DIGITS = 24;

/** The message that the text says. */
export interface NullReplyMessage {
  readonly role: "assistant";
  readonly content: string;
  readonly tool_calls: readonly { readonly id: string; readonly type: "function"; readonly function: typeof CALL }[];
}

/** As a message of the chat API; `id` is a UUID that its call is named after. */
export function nullReplyMessage(id: string): NullReplyMessage {
  const callId = `call_${id.replaceAll("-", "").slice(0, CALL_ID_DIGITS)}`;
  return { role: "assistant", content: SAID, tool_calls: [{ id: callId, type: "function", function: CALL }] };
}
