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
  /** Texts of tokens that end a turn in the template's stead: after one of them the template's own closer is not repeated. */
  readonly closedBy: readonly string[];
  /** The id of a call, in the form the family's template and model know. */
  callId(call: CallToName): string;
}

/** `call_` and 24 hex digits, as OpenAI-compatible servers write ids. */
export function plainCallId(call: CallToName): string {
  return `call_${call.random(24)}`;
}
