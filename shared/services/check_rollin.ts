/** Whether a task can have turns of the teacher's. Asked before the task exists, so that none waits for a turn that can't be. */

import { VerbatimError } from "../core/errors.ts";
import type { Renderer } from "../ports/renderer.ts";
import type { TeacherLabeller } from "./label_turn.ts";
import { renderAction } from "./render_action.ts";

/** Refuses roll-in (`unsupported`) without a teacher, and where the student's template can't write another's action. */
export async function checkRollin(renderer: Renderer, labeller: TeacherLabeller | null): Promise<void> {
  if (labeller === null) throw unsupported("no teacher is configured: set TEACHER_SGLANG_URL");
  try {
    await renderAction({ kind: "message", text: "?" }, renderer);
  } catch (cause) {
    if (!(cause instanceof VerbatimError)) throw cause;
    throw unsupported(cause.message);
  }
}

function unsupported(reason: string): VerbatimError {
  return new VerbatimError("unsupported", `Field "rollin": ${reason}`, { details: { field: "rollin", reason } });
}
