/** The tokens an engine would be given for a request: the series it goes on from, and what to put after it. Nothing is sent here. */

import { type KnownPrompt, locate, type Located } from "../../core/locate.ts";
import type { Conversation } from "../../core/message.ts";
import type { RequestUnits } from "../../core/request_units.ts";
import type { TaskRecord } from "../../core/task.ts";
import { TokenSeries } from "../../core/token_series.ts";
import type { Rendered, Renderer } from "../../ports/renderer.ts";
import type { TaskView } from "./task_views.ts";

/** A rendered request. */
export interface PlacedPrompt {
  /** How it relates to earlier turns; null where nothing is recorded. */
  readonly located: Located | null;
  /** The turn whose series it extends, or null. */
  readonly parent: number | null;
  /** The turn whose series it would extend, did the template still write that as it was; null as a rule. */
  readonly rewriteOf: number | null;
  /** What the series it extends does not hold. */
  readonly rendered: Rendered;
  /** All of it. */
  readonly prompt: TokenSeries;
}

/** A request, and the task's turns it may go on from. */
export interface PromptRequest {
  readonly conversation: Conversation;
  readonly units: RequestUnits;
  /** A request of the task that it may repeat most of, or null. */
  readonly known: KnownPrompt | null;
  readonly renderer: Renderer;
  readonly recorded: { readonly task: TaskRecord; readonly view: TaskView } | null;
}

/** Finds the request's place and renders it there. A conversation the template refuses is `invalid_request` or `unsupported`. */
export async function placePrompt(request: PromptRequest, signal: AbortSignal): Promise<PlacedPrompt> {
  const { conversation, renderer, recorded } = request;
  const located = recorded === null
    ? null
    : locate(recorded.view.forest, request.units, { echo: recorded.task.settings.echo, known: request.known });
  const extend = located?.extend ?? null;
  const rewriteOf = recorded === null || extend === null || templateKeeps(request, recorded, extend.turn)
    ? null
    : extend.turn;
  if (recorded === null || extend === null || rewriteOf !== null) {
    const rendered = await renderer.renderPrompt(conversation, { signal });
    return { located, parent: null, rewriteOf, rendered, prompt: TokenSeries.EMPTY.append(rendered.ids) };
  }
  const before = recorded.view.series(extend.turn);
  const rendered = await renderer.renderIncrement({
    appended: extend.append,
    tools: conversation.tools,
    settings: conversation.settings,
    lastToken: before.last(),
    calls: recorded.view.turns[extend.turn]!.detail.reply.toolCalls,
  }, { signal });
  return { located, parent: extend.turn, rewriteOf, rendered, prompt: before.append(rendered.ids) };
}

/** Whether a series may stay: under `keep` always, under `template` while the template writes the reasoning that is in it. */
function templateKeeps(
  { conversation, units, renderer }: PromptRequest,
  { task, view }: { readonly task: TaskRecord; readonly view: TaskView },
  parent: number,
): boolean {
  if (task.settings.reasoningHistory === "keep") return true;
  const reasoned = view.forest.path(parent).flatMap((turn) => {
    if ((view.turns[turn]!.detail.reply.reasoning ?? "").trim() === "") return [];
    const { node, history } = view.forest.turn(turn);
    // Every turn of a path has its echo in the request, after the turn's own prompt.
    const echo = units.units[history.open === null ? node.depth : node.depth - 1];
    return echo?.kind === "assistant" ? [echo.end - 1] : [];
  });
  return reasoned.length === 0 || renderer.keepsReasoning(conversation, reasoned);
}
