/** A real wait, for how long something stays broken. */

/** Resolves after so many milliseconds. */
export function sleepMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
