/** Background work of a process that stays alive: kept in a set until it ends. */

import type { Background } from "../ports/background.ts";
import type { Logger } from "../ports/logger.ts";

/** Tracks work and logs what fails. `keepAlive` is the host's own hook (`EdgeRuntime.waitUntil`), where there is one. */
export function createTrackedBackground(logger: Logger, keepAlive?: (work: Promise<unknown>) => void): Background {
  const running = new Set<Promise<void>>();
  return {
    run(label, work) {
      const tracked: Promise<void> = work.then(() => {}, (cause: unknown) => {
        logger.error("Background work failed", { label, cause: cause instanceof Error ? cause.stack : String(cause) });
      }).finally(() => running.delete(tracked));
      running.add(tracked);
      keepAlive?.(tracked);
    },
    async idle() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
