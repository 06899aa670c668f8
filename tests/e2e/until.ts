/** Waits for a condition: bounded, and never for "long enough". */

const LONGEST_MS = 30_000;
const POLL_MS = 5;

/** Resolves once the condition holds; fails, naming what was waited for, when it does not within thirty seconds. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + LONGEST_MS;
  while (!await condition()) {
    if (performance.now() > deadlineMs) throw new Error(`Waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
