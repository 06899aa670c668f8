/** What a model family fixes beside its template. It does not render. */

/** A call to be named. */
export interface CallToName {
  readonly name: string;
  /** The calls of the conversation before it. */
  readonly priorCalls: number;
  readonly random: (hexDigits: number) => string;
}

export interface Family {
  readonly name: string;
  /** Texts of tokens that end a turn though neither template nor vocabulary says so, where the vocabulary has them. */
  readonly stopTokens: readonly string[];
  /**
   * Texts of tokens that end a turn where sampled, and of those that the template writes in their stead in history: after
   * the one the other is not written.
   */
  readonly closedBy: ReadonlyMap<string, string>;
  /** Whether the model makes several calls in one reply; where it makes one, a template need not write more. */
  readonly callsInParallel: boolean;
  /** What to do where the model's own template fails its checks. */
  readonly templateHint?: string;
  /** The id of a call, in the form the family's template and model know. */
  callId(call: CallToName): string;
}

/** `call_` and 24 hex digits, as OpenAI-compatible servers write ids. */
export function plainCallId(call: CallToName): string {
  return `call_${call.random(24)}`;
}

/** What holds of a family that says nothing else. */
export const PLAIN_FAMILY: Omit<Family, "name"> = {
  stopTokens: [],
  closedBy: new Map(),
  callsInParallel: true,
  callId: plainCallId,
};
