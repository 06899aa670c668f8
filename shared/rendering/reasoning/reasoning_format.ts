/** What a reasoning format is, as data. */

import type { ChannelSyntax } from "../tool_calls/channel_syntax.ts";

/** Reasoning between two markers at the start of the text. */
export interface TagReasoning {
  readonly type: "tags";
  /** Opening markers, any of them. */
  readonly starts: readonly string[];
  /** Closing markers, any of them. */
  readonly ends: readonly string[];
  /** Literals beside the calls' start markers that close the block; they stay to be read. */
  readonly closers?: readonly string[];
}

/** Reasoning that is not split off; the marker that the prompt ended with goes back in front of the text. */
export interface AppendedReasoning {
  readonly type: "append";
  readonly start: string;
}

/** Reasoning in messages of its own. */
export interface ChannelReasoning {
  readonly type: "channels";
  readonly channels: ChannelSyntax;
}

/** A reasoning format. */
export interface ReasoningFormat {
  /** SGLang's names for it. */
  readonly names: readonly string[];
  /** Literals that frame messages; they are never content. */
  readonly framing?: readonly string[];
  /** Tokens that end a completion; one at the very end of the text is not content. */
  readonly stopTokens: readonly string[];
  readonly syntax: TagReasoning | AppendedReasoning | ChannelReasoning;
}
