/** Is the client still there, and did it get the answer? The only place that looks at `request.signal`. */

import type { Context } from "hono";
import { VerbatimError } from "../core/errors.ts";

/** Watches one client. */
export interface ClientWatch {
  /** Aborts, with `client_gone` as its reason, when the client hangs up before the answer has settled. */
  readonly signal: AbortSignal;
  /**
   * Call when the whole answer has been handed to the host. Resolves to whether it went out whole. Where the host
   * does not tell when an answer has been sent, one that was handed over counts as sent.
   */
  settle(): Promise<boolean>;
}

/** Starts to watch the client of this request. */
export function watchClient(context: Context): ClientWatch {
  const gone = new AbortController();
  const source = context.req.raw.signal;
  function onAbort(): void {
    gone.abort(new VerbatimError("client_gone", "The client hung up before its answer"));
  }
  if (source.aborted) onAbort();
  else source.addEventListener("abort", onAbort, { once: true });
  return {
    signal: gone.signal,
    async settle() {
      const sent = await completionOf(context);
      source.removeEventListener("abort", onAbort);
      return sent && !gone.signal.aborted;
    },
  };
}

/** Deno's server tells when an answer has left; it does so for a broken connection too, after the signal has fired. */
async function completionOf(context: Context): Promise<boolean> {
  const host: unknown = context.env;
  if (typeof host !== "object" || host === null || !("completed" in host)) return true;
  try {
    await host.completed;
    return true;
  } catch {
    return false;
  }
}
