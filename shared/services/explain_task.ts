/** Why each request of a task was taken for what it was taken for. */

import { type Decision, verdictText } from "../core/judgement.ts";
import type { JudgedTask } from "./judged_task.ts";

/** Decisions on answered requests, in order. */
export function explainTask(judged: JudgedTask): Record<string, unknown> {
  const { judgement } = judged;
  return {
    verdicts: judgement.final ? "final" : "provisional",
    decisions: judgement.decisions.filter((decision) => decision.request !== null).map((decision) =>
      decisionShape(decision, judged)
    ),
  };
}

function decisionShape(decision: Decision, judged: JudgedTask): Record<string, unknown> {
  const { at } = decision;
  const verdict = verdictText(decision.verdict);
  const strict = verdictText(decision.strictVerdict);
  return {
    request: decision.request,
    turn: decision.turn,
    related_to: decision.relatedTo,
    relation: decision.relation,
    echo: decision.echo,
    ...(decision.also.length === 0 ? {} : { echo_also: decision.also }),
    ...(decision.reasoning === null ? {} : { reasoning: decision.reasoning }),
    ...(decision.toolsChanged ? { tools: "changed" } : {}),
    at: at === null ? null : { unit: at.unit, message: at.message, field: at.field },
    stored: at?.stored ?? null,
    received: at?.received ?? null,
    verdict,
    ...(strict === verdict ? {} : { strict_verdict: strict }),
    effect: effectOf(decision, judged),
  };
}

function effectOf(decision: Decision, judged: JudgedTask): string {
  if (decision.kind === "replay") return `answered with turn ${decision.turn} again`;
  const record = decision.turn === null ? undefined : judged.turns[decision.turn]?.record;
  if (record === undefined) return "nothing was recorded";
  return record.parent === null
    ? "began a path, its prompt rendered whole"
    : `extended the series of turn ${record.parent}`;
}
