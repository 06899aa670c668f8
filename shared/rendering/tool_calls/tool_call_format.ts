/** What a tool-call format is: its names and markers as data, and the machine that reads it. */

import type { MachineContext } from "./call_block.ts";
import type { ChannelSyntax } from "./channel_syntax.ts";
import type { Step } from "./text_cursor.ts";

/** Reads the blocks of one completion. */
export interface BlockReader {
  /** Literals at which a block begins. They also close open reasoning. */
  readonly starts: readonly string[];
  /** Literals at which a block may begin; `readCandidate` looks closer. Reasoning goes on over them. */
  readonly candidates?: readonly string[];
  /** Reads a block; the cursor stands at `start`, which is unread. */
  readBlock(start: string): Step<void>;
  /** Reads a block at a candidate; false, and nothing read, if there is none. */
  readCandidate?(): Step<boolean>;
  /** Reads a block without a marker, which can only be at the beginning of the answer; nothing if there is none. */
  readOpening?(): Step<void>;
}

/** Blocks of calls within text, or messages in channels of which some are calls. */
export type ToolCallMachine =
  | { readonly type: "blocks"; readonly reader: (context: MachineContext) => BlockReader }
  | { readonly type: "channels"; readonly channels: ChannelSyntax };

/** A tool-call format. */
export interface ToolCallFormat {
  /** SGLang's names for it. */
  readonly names: readonly string[];
  /** Literals that frame messages; they are never content. */
  readonly framing?: readonly string[];
  /** Tokens that end a completion; one at the very end of the text is not content. */
  readonly stopTokens: readonly string[];
  readonly machine: ToolCallMachine;
}
