/** Randomness for names, as a parameter. */
export interface Ids {
  /** A version 4 UUID without dashes, 32 hex digits. */
  uuid(): string;
  /** `digits` random hex digits. */
  hex(digits: number): string;
  /** Sorts by time, then by order of making within this process. */
  ulid(): string;
}
