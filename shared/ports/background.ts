/** Work that outlives its request (`EdgeRuntime.waitUntil` where there is one). */
export interface Background {
  /** Runs to the end; a failure is logged under `label`, never lost. */
  run(label: string, work: Promise<unknown>): void;
  /** Resolves when all work accepted so far has ended. */
  idle(): Promise<void>;
}
