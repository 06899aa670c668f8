/** What a reasoning format is, as data. */

/** Reasoning between two markers at the start of the text. */
export interface TagReasoning {
  readonly type: "tags";
  readonly start: string;
  readonly end: string;
  /** Literals beside the calls' start markers that close the block; they stay to be read. */
  readonly closers?: readonly string[];
}

/** Reasoning that is not split off; the marker that the prompt ended with goes back in front of the text. */
export interface AppendedReasoning {
  readonly type: "append";
  readonly start: string;
}

/** A reasoning format. */
export interface ReasoningFormat {
  /** SGLang's names for it. */
  readonly names: readonly string[];
  /** Literals that frame messages; they are never content. */
  readonly framing?: readonly string[];
  /** Tokens that end a completion; one at the very end of the text is not content. */
  readonly stopTokens: readonly string[];
  readonly syntax: TagReasoning | AppendedReasoning;
}
