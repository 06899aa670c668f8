/** The host's clock. */

import type { Clock } from "../ports/clock.ts";

/** Longest delay a host's timer takes; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Time as the host tells it. */
export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    let leftMs = ms;
    for (; leftMs > LONGEST_TIMER_MS; leftMs -= LONGEST_TIMER_MS) await timer(LONGEST_TIMER_MS, signal);
    await timer(leftMs, signal);
  },
};

function timer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const handle = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    function onAbort(): void {
      clearTimeout(handle);
      reject(signal?.reason);
    }
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
