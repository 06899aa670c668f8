/** Waits for the answers that a request goes on from before they are whole. It reads and records nothing. */

import { locate } from "../../core/locate.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CallsInFlight } from "./calls_in_flight.ts";
import type { RunningCall } from "./running_call.ts";
import type { TaskView } from "./task_views.ts";

/** An answer is waited for so long. */
const LONGEST_WAIT_MS = 5000;

/**
 * An agent may go on from an answer before its last chunk, which leaves after the commit: the turn it goes on from is
 * then about to be committed, and is waited for. Else the agent's own history would be rendered in its place. True where
 * there was something to wait for. Rejects with the call's reason when it is aborted meanwhile.
 */
export async function awaitAnswers(
  context: { readonly inFlight: CallsInFlight; readonly clock: Clock },
  { agent, call, units }: RunningCall,
  view: TaskView,
): Promise<boolean> {
  const { inFlight, clock } = context;
  const answering = inFlight.answering(view.uid, units);
  if (answering.length === 0) return false;
  // Another sample of that prompt may be committed, of which this is no echo.
  const { extend } = locate(view.forest, units, { echo: "strict", known: agent.nearest?.prompt ?? null });
  const known = extend === null ? 0 : view.forest.turn(extend.turn).node.depth;
  const missing = answering.filter((other) => other.units.units.length > known);
  if (missing.length === 0) return false;
  const timer = new AbortController();
  const tooLong = clock.sleep(LONGEST_WAIT_MS, AbortSignal.any([timer.signal, call.signal])).catch(() => {});
  await Promise.race([Promise.all(missing.map(({ ended }) => ended)), tooLong]);
  timer.abort();
  call.signal.throwIfAborted();
  return true;
}
