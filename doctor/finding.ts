/** What the doctor says of one thing it looked at. */

export interface Finding {
  /** What was looked at. */
  readonly name: string;
  readonly verdict: "passed" | "failed" | "not checked";
  /** What was found, why it failed, why it was not looked at. */
  readonly note: string;
}

export function passed(name: string, note = ""): Finding {
  return { name, verdict: "passed", note };
}

export function failed(name: string, note: string): Finding {
  return { name, verdict: "failed", note };
}

export function notChecked(name: string, note: string): Finding {
  return { name, verdict: "not checked", note };
}

/** The words of whatever was thrown. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
