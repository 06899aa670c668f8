/** The place of a request as plain data, to be kept with its turn. Made at the commit, from what is known then. */

import { digest } from "./digest.ts";
import { showCalls, storedUnit } from "./difference.ts";
import type { Forest } from "./forest.ts";
import { locate, type Located } from "./locate.ts";
import type { AssistantMessage } from "./message.ts";
import { type AssistantUnit, assistantUnit, messageChain, signCall } from "./message_signature.ts";
import type { RequestUnits } from "./request_units.ts";
import { shorten } from "./shorten.ts";
import type { OpenTurn, RequestHistory, StoredReply, TurnHistory } from "./turn_history.ts";

/** A place that was looked up already. It is looked up again where the forest has grown since. */
export interface KnownPlace {
  /** The place, in the same forest, under any rule for echoes: what is kept of it is the same. */
  readonly located?: Located | null;
}

/** The place of a turn: the request's, and its reply. To be made again where the commit lost a race against another turn. */
export function turnHistory(
  forest: Forest,
  request: RequestUnits,
  reply: AssistantMessage,
  known: KnownPlace = {},
): TurnHistory {
  return { ...requestHistory(forest, request, known), reply: storedReply(request, reply) };
}

/** The place of a request that failed, if it is to be remembered. */
export function requestHistory(forest: Forest, request: RequestUnits, known: KnownPlace = {}): RequestHistory {
  const located = known.located?.entries === forest.entries.length
    ? known.located
    : locate(forest, request, { echo: "lenient" });
  const { related, follows, sharedUnits, sharedOwner } = located;
  const last = request.units.at(-1);
  return {
    toolsDigest: request.toolsDigest,
    settingsDigest: request.settingsDigest,
    hasTools: request.hasTools,
    selected: request.selected,
    ...sharedPart(forest, request, { turn: sharedOwner, units: sharedUnits }),
    units: request.units.slice(sharedUnits).map(storedUnit),
    entries: request.entries,
    open: last?.kind === "assistant" ? openTurn(last) : null,
    related,
    follows,
  };
}

/** Which turn to read the leading units from, and where they stand elsewhere in this request. */
function sharedPart(
  forest: Forest,
  request: RequestUnits,
  { turn, units }: { readonly turn: number | null; readonly units: number },
): Pick<RequestHistory, "shared" | "moved"> {
  if (turn === null) return { shared: null, moved: [] };
  const known = forest.messagesOf(forest.turn(turn).history, units);
  const moved: [number, number][] = [];
  let by = 0;
  for (const [unit, message] of known.entries()) {
    const now = request.units[unit]!.message - message;
    if (now !== by) moved.push([unit, now]);
    by = now;
  }
  return { shared: { turn, units }, moved };
}

function openTurn(unit: AssistantUnit): OpenTurn {
  return {
    text: digest(unit.text),
    messages: messageChain(unit).at(-1) ?? "",
    messageCount: unit.messages.length,
    callCount: unit.calls.length,
    formCount: unit.forms.length,
  };
}

/** A reply as kept. Where the prompt ended in an assistant turn, the reply continues that turn. */
function storedReply(request: RequestUnits, reply: AssistantMessage): StoredReply {
  const last = request.units.at(-1);
  const whole = assistantUnit([...(last?.kind === "assistant" ? last.messages : []), reply], 0);
  return {
    unit: whole.hash,
    text: digest(whole.text),
    hasText: reply.content.trim() !== "",
    calls: reply.toolCalls.map((call) => ({ id: call.id, hash: signCall(call).hash })),
    forms: reply.form.split("\n"),
    reasoning: reply.reasoning === null
      ? null
      : { exact: digest(reply.reasoning), trimmed: digest(reply.reasoning.trim()) },
    preview: shorten(reply.content.trim()),
    callsPreview: showCalls(reply.toolCalls),
  };
}
