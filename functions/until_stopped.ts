/** Waits for the host to ask the process to stop. */

/** Resolves at the first SIGINT or SIGTERM. */
export function untilStopped(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const signals = Deno.build.os === "windows" ? ["SIGINT"] as const : ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) Deno.addSignalListener(signal, resolve);
  return promise.finally(() => {
    for (const signal of signals) Deno.removeSignalListener(signal, resolve);
  });
}
