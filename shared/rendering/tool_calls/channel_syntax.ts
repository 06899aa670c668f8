/** The data that describes a format whose completions are messages in channels. */

import type { CallBlock, MachineContext, TextStatus } from "./call_block.ts";
import type { BlockReader } from "./tool_call_format.ts";
import type { Step } from "./text_cursor.ts";

/** What a message is, by its header. */
export type ChannelMessage =
  | { readonly type: "reasoning" | "content" }
  | { readonly type: "call"; readonly name: string };

/** Reads call messages. */
export interface CallMessageReader {
  /** Reads a body that begins at `from`, its end marker too, and tells the block what it was; returns what a block without any call is. */
  readMessage(block: CallBlock, from: number, name: string): Step<TextStatus>;
  /** Reads calls that stand in other messages, where the format has them. */
  readonly inner: BlockReader | null;
}

/** Patterns of a whole header, and of any beginning of one; both of bounded length. */
export interface HeaderPattern {
  readonly whole: RegExp;
  readonly part: RegExp;
}

/** A format of messages. */
export interface ChannelSyntax {
  /** Literals at which a header begins. */
  readonly headerStarts: readonly string[];
  /** Literals that end a header; the body follows. */
  readonly headerEnds: readonly string[];
  /** Literals within a header. */
  readonly headerParts: readonly string[];
  /** What a header without its start looks like at the beginning of the text. */
  readonly opening: HeaderPattern | null;
  /** Literals that end a message. */
  readonly ends: readonly string[];
  /** Other literals that are never content. */
  readonly framing: readonly string[];
  /** What the header says; `end` is the literal that ended it. */
  readonly messageOf: (header: string, end: string) => ChannelMessage;
  readonly callReader: (context: MachineContext) => CallMessageReader;
}
