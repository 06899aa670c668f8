/** What stands between a gateway and its workers, and can be started anew. */

/** A router of a run. */
export interface WorldRouter {
  /** Stays the same over restarts. */
  readonly url: string;
  /** Its connections break and nobody answers, for so long at least. */
  restart(downMs: number): Promise<void>;
  close(): Promise<void>;
}
