/** Why each request of a task was taken for what it was taken for. */

import { isSameTurn } from "../../core/echo_grade.ts";
import { type Decision, verdictText } from "../../core/judgement.ts";
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
  if (record.parent !== null) return `extended the series of turn ${record.parent}`;
  if (record.rewriteOf !== undefined) {
    return `began a path, its prompt rendered whole: the template no longer writes the reasoning up to turn ${record.rewriteOf}`;
  }
  switch (decision.relation) {
    case "root":
    case "side_root":
      return "began a path, its prompt rendered whole";
    case "retry":
      return decision.relatedTo === null
        ? "sampled what a failed call had asked for, its prompt rendered whole"
        : `sampled the prompt of turn ${decision.relatedTo} again`;
    case "append":
      return `began a path, its prompt rendered whole: ${apartFrom(decision)}`;
    case "branch":
    case "fork":
      return `left turn ${decision.relatedTo}: began a path, its prompt rendered whole`;
  }
}

/** Why a request that goes on from a turn does not extend its series. */
function apartFrom(decision: Decision): string {
  if (decision.toolsChanged) return `the tools differ from those of turn ${decision.relatedTo}`;
  return isSameTurn(decision.echo ?? "missing")
    ? `the template settings differ from those of turn ${decision.relatedTo}`
    : `the echo does not say what turn ${decision.relatedTo} said`;
}
