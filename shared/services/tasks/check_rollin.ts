/** Whether a task can have turns of the teacher's. Asked before the task exists, so that none waits for a turn that can't be. */

import { VerbatimError } from "../../core/errors.ts";
import type { Renderer } from "../../ports/renderer.ts";
import type { TeacherLabeller } from "../teacher/label_turn.ts";
import { renderAction } from "../teacher/render_action.ts";

/** Refuses roll-in (`unsupported`) without a teacher, and where the student's template can't write another's action. */
export async function checkRollin(renderer: Renderer, labeller: TeacherLabeller | null): Promise<void> {
  if (labeller === null) throw unsupported("no teacher is configured: set TEACHER_SGLANG_URL");
  // Some students always reason, and some never do.
  const reasons = await Promise.all([{}, { reasoning: "?" }].map((beside) => reasonAgainst(beside, renderer)));
  if (!reasons.includes(null)) throw unsupported(reasons.join("; "));
}

async function reasonAgainst(beside: { readonly reasoning?: string }, renderer: Renderer): Promise<string | null> {
  try {
    await renderAction({ kind: "message", text: "?", ...beside }, renderer);
    return null;
  } catch (cause) {
    if (cause instanceof VerbatimError) return cause.message;
    throw cause;
  }
}

function unsupported(reason: string): VerbatimError {
  return new VerbatimError("unsupported", `Field "rollin": ${reason}`, { details: { field: "rollin", reason } });
}
