/** One agent's life: a task from its creation to its finish. What it was told is kept, to be held against the record. */

import type { Body } from "../e2e/gateway_client.ts";
import type { PlannedTask } from "./fault_plan.ts";
import type { PatientClient } from "./patient_client.ts";
import { askBeside, type Said, startTalk } from "./talks.ts";

/** A life that is over. */
export interface Lived {
  readonly task: PlannedTask;
  /** Of its conversation, in order. */
  readonly heard: readonly Said[];
  /** What it asked beside. */
  readonly beside: Said | null;
  /** What finishing it answered. */
  readonly finished: Body;
}

/** Lives it. */
export async function liveTask(client: PatientClient, task: PlannedTask): Promise<Lived> {
  const settings = { task_id: task.id, history: task.history, echo: "lenient", on_abort: task.onAbort };
  const { api_key: key } = await client.admin("POST", "/tasks", settings, { "idempotency-key": task.id });
  const talk = startTalk(task.dialect, `Begin ${task.id}: use a tool.`);
  const heard: Said[] = [];
  let beside: Promise<Said | null> = Promise.resolve(null);
  for (const [index, turn] of task.turns.entries()) {
    if (task.rewritesAt === index) talk.rewrite();
    const asked = client.ask({ key, talk, ...turn });
    if (index === 0 && task.asksBeside) {
      const title = askBeside(`A title for ${task.id}`);
      beside = client.ask({ key, talk: title, stream: false, maxTokens: 8, hangUpAfter: null });
      beside.catch(() => {});
    }
    const said = await asked;
    heard.push(said);
    const words = said.calls.length === 0 || turn.speaksAnyway ? turn.next : null;
    talk.goOn(said, { result: turn.next, words });
  }
  const title = await beside;
  const finished = await client.admin("POST", `/tasks/${task.id}/finish`, { reward: heard.length });
  return { task, heard, beside: title, finished };
}
