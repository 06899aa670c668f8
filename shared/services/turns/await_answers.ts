/** Waits for calls that are about to be committed, where a request's place hangs on them. It reads and records nothing. */

import { locate } from "../../core/locate.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CallsInFlight, LocalCall } from "./calls_in_flight.ts";
import type { RunningCall } from "./running_call.ts";
import type { SharedCall } from "./shared_call.ts";
import type { TaskView } from "./task_views.ts";

/** A call is waited for so long. */
const LONGEST_WAIT_MS = 5000;

/** What waiting needs. */
interface AwaitContext {
  readonly inFlight: CallsInFlight;
  readonly clock: Clock;
}

/**
 * An agent may go on from an answer before its last chunk, which leaves after the commit: the turn it goes on from is
 * then about to be committed, and is waited for. Else the agent's own history would be rendered in its place. True where
 * there was something to wait for. Rejects with the call's reason when it is aborted meanwhile.
 */
export async function awaitAnswers(
  context: AwaitContext,
  { agent, call, units }: RunningCall,
  view: TaskView,
): Promise<boolean> {
  const answering = context.inFlight.answering(view.uid, units);
  if (answering.length === 0) return false;
  // Another sample of that prompt may be committed, of which this is no echo.
  const { extend } = locate(view.forest, units, { echo: "strict", known: agent.nearest?.prompt ?? null });
  const known = extend === null ? 0 : view.forest.turn(extend.turn).node.depth;
  const missing = answering.filter((other) => other.units.units.length > known);
  return await awaitEnds(context, call, missing);
}

/**
 * A client may give its request up and repeat it while the answer is being committed: that answer is the repeat's, too.
 * True where there was something to wait for. Rejects with the call's reason when it is aborted meanwhile.
 */
export async function awaitGivenUp(
  context: AwaitContext,
  { call, digest }: RunningCall,
  uid: string,
): Promise<boolean> {
  return await awaitEnds(context, call, context.inFlight.givenUp(uid, digest));
}

async function awaitEnds(
  { clock }: AwaitContext,
  { signal }: SharedCall,
  others: readonly LocalCall[],
): Promise<boolean> {
  if (others.length === 0) return false;
  const timer = new AbortController();
  const tooLong = clock.sleep(LONGEST_WAIT_MS, AbortSignal.any([timer.signal, signal])).catch(() => {});
  await Promise.race([Promise.all(others.map(({ ended }) => ended)), tooLong]);
  timer.abort();
  signal.throwIfAborted();
  return true;
}
