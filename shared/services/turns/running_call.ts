/** A call on its way, with what is known of it before anything is read. */

import type { RequestUnits } from "../../core/request_units.ts";
import type { AgentCall } from "./agent_call.ts";
import type { EffectiveSampling } from "./effective_sampling.ts";
import type { SharedCall } from "./shared_call.ts";

/** The call, as all steps of its turn see it. */
export interface RunningCall {
  readonly agent: AgentCall;
  readonly call: SharedCall;
  readonly callId: string;
  readonly units: RequestUnits;
  readonly effective: EffectiveSampling;
  readonly digest: string;
  /** Whether the same request again means the same answer again. */
  readonly wantsReplay: boolean;
}
