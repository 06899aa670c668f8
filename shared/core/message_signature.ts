/**
 * A conversation as a list of units, and what of a unit is compared. The rules are those of the echo vectors: text is
 * the text of the parts, assistant messages in a row are one unit and are compared without reasoning, call ids and
 * surrounding white space, tool results are known by the call they answer. It knows neither dialects nor turns.
 */

import { canonicalArguments } from "./canonical_json.ts";
import { digestOf } from "./digest.ts";
import type { AssistantMessage, Content, Message, ToolCall, ToolMessage } from "./message.ts";
import { sharedMessages } from "./same_message.ts";

/** What every unit has. */
export interface UnitBase {
  /** Equal hashes, equal units: 128 bits over what is compared. */
  readonly hash: string;
  /** Index of the unit's first entry in the request's `messages` or `input`; -1 for text outside the list. */
  readonly message: number;
  /** Index in the canonical messages after the unit's last one. */
  readonly end: number;
  /** The text, whole; shortened where it is kept. */
  readonly text: string;
}

/** A system, user or tool unit. */
export interface PlainUnit extends UnitBase {
  /** Tag. */
  readonly kind: "system" | "user" | "tool";
}

/** An assistant turn: all assistant messages in a row. */
export interface AssistantUnit extends UnitBase {
  /** Tag. */
  readonly kind: "assistant";
  /** Calls in order. */
  readonly calls: readonly SignedCall[];
  /** How it was written: the lines of the messages' `form`, in order. */
  readonly forms: readonly string[];
  /** The messages it is made of. */
  readonly messages: readonly AssistantMessage[];
}

/** One unit of a conversation. Its text is trimmed where it is an assistant's. */
export type Unit = PlainUnit | AssistantUnit;

/** A call as compared. */
export interface SignedCall {
  /** The id, which is not part of the hash. */
  readonly id: string;
  /** The name, which is. */
  readonly name: string;
  /** Hash of name and arguments. */
  readonly hash: string;
}

/** A conversation whose units are known already. */
export interface KnownUnits {
  /** The messages. */
  readonly messages: readonly Message[];
  /** Their units. */
  readonly units: readonly Unit[];
}

/**
 * The units of a conversation, in order. Results inside one block of tool messages come in the order of their calls.
 * Where the conversation begins with the same messages as a known one, the known units are taken: the result is the
 * same, and hashing is left to what is new.
 */
export function unitsOf(messages: readonly Message[], known: KnownUnits | null = null): Unit[] {
  const units = known === null ? [] : knownUnits(messages, known);
  let calls: CallIndex | null = null;
  for (let at = units.at(-1)?.end ?? 0; at < messages.length;) {
    const message = messages[at]!;
    const end = endOfRun(messages, at);
    if (message.role === "assistant") {
      const unit = assistantUnit(messages.slice(at, end).filter(isAssistant), end);
      calls?.add(unit);
      units.push(unit);
    } else if (message.role === "tool") {
      const index = calls ??= new CallIndex(messages, units);
      const run = messages.slice(at, end).filter(isTool);
      // One by one: a block may hold more results than a call takes arguments.
      for (const unit of toolUnits(run, run.map(({ toolCallId }) => index.answer(toolCallId)), end)) units.push(unit);
    } else {
      units.push({
        kind: message.role,
        hash: digestOf(message.role, segmentsOf(message.content)),
        message: message.source,
        end,
        text: textWithImages(message.content),
      });
    }
    at = end;
  }
  return units;
}

/** The known units of the leading messages that both have. A run that goes on in one of them only is not the same unit. */
function knownUnits(messages: readonly Message[], known: KnownUnits): Unit[] {
  const shared = sharedMessages(messages, known.messages);
  let count = known.units.length;
  while (count > 0) {
    const { end } = known.units[count - 1]!;
    if (end < shared || (end === shared && endOfRun(messages, end - 1) === end)) break;
    count--;
  }
  return known.units.slice(0, count);
}

/** The unit of assistant messages in a row; `end` as in {@linkcode UnitBase}. */
export function assistantUnit(messages: readonly AssistantMessage[], end: number): AssistantUnit {
  const text = messages.map((message) => message.content).join("").trim();
  const calls = messages.flatMap((message) => message.toolCalls.map(signCall));
  return {
    kind: "assistant",
    hash: assistantHash(text, calls),
    message: messages[0]?.source ?? -1,
    end,
    text,
    calls,
    forms: messages.flatMap((message) => message.form.split("\n")),
    messages,
  };
}

/** The hash of an assistant unit of this text (trimmed) and these calls. */
export function assistantHash(text: string, calls: readonly SignedCall[]): string {
  return digestOf("assistant", text, calls.map((call) => call.hash));
}

/** The hash of an assistant turn's messages one by one, after each of them. */
export function messageChain(unit: AssistantUnit): string[] {
  let hash = "";
  return unit.messages.map((message) => hash = digestOf(hash, assistantUnit([message], 0).hash));
}

/** A call as compared: the name, and the arguments as a JSON value. */
export function signCall(call: ToolCall): SignedCall {
  return { id: call.id, name: call.name, hash: digestOf(call.name, canonicalArguments(call.arguments)) };
}

/** Index after the message and, where it is an assistant's or a tool's, after all of that role that follow it. */
function endOfRun(messages: readonly Message[], at: number): number {
  const { role } = messages[at]!;
  let end = at + 1;
  if (role === "assistant" || role === "tool") { while (messages[end]?.role === role) end++; }
  return end;
}

function isAssistant(message: Message): message is AssistantMessage {
  return message.role === "assistant";
}

function isTool(message: Message): message is ToolMessage {
  return message.role === "tool";
}

/** Text pieces and images in order: text next to text is one piece, empty text is none. */
function segmentsOf(content: Content): string[] {
  if (typeof content === "string") return content === "" ? [] : [`t${content}`];
  const segments: string[] = [];
  let text = "";
  for (const part of content) {
    if (part.type === "text") {
      text += part.text;
      continue;
    }
    if (text !== "") segments.push(`t${text}`);
    text = "";
    segments.push(`i${part.sha256}`);
  }
  if (text !== "") segments.push(`t${text}`);
  return segments;
}

function textWithImages(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((part) => part.type === "text" ? part.text : `[image ${part.sha256.slice(0, 12)}]`).join("");
}

/** Which call a tool result answers: ids may be empty, used twice or made up by the client, so the place counts, not the id. */
class CallIndex {
  /** By id: the latest assistant unit that has it, the places of its calls of that id, and how many were answered. */
  readonly #byId = new Map<string, { readonly unit: number; readonly places: number[]; answered: number }>();
  #units = 0;

  /** The calls of the units so far, and the results that answered them. */
  constructor(messages: readonly Message[], units: readonly Unit[]) {
    let at = 0;
    for (const unit of units) {
      // The units of a block of results all end where the block ends.
      for (; at < unit.end; at++) {
        const message = messages[at]!;
        if (message.role === "tool") this.answer(message.toolCallId);
      }
      if (unit.kind === "assistant") this.add(unit);
    }
  }

  add(unit: AssistantUnit): void {
    const number = this.#units++;
    unit.calls.forEach((call, place) => {
      const known = this.#byId.get(call.id);
      if (known?.unit === number) known.places.push(place);
      else this.#byId.set(call.id, { unit: number, places: [place], answered: 0 });
    });
  }

  /** The assistant unit, the place of the call in it, and which answer to that call this is; null where no call has the id. */
  answer(id: string): CallPlace {
    const known = this.#byId.get(id);
    if (known === undefined) return null;
    const nth = known.answered++;
    // Results that share an id answer the calls of that id in turn; what comes after that answers the last one again.
    const place = Math.min(nth, known.places.length - 1);
    return [known.unit, known.places[place]!, nth - place];
  }
}

/** The place of a result among the calls, as {@linkcode CallIndex.answer} gives it. */
type CallPlace = readonly [number, number, number] | null;

function toolUnits(messages: readonly ToolMessage[], places: readonly CallPlace[], end: number): Unit[] {
  const answers = messages.map((message, k) => ({ message, call: places[k] ?? null }));
  const compare = (a: readonly number[], b: readonly number[]) => a[0]! - b[0]! || a[1]! - b[1]! || a[2]! - b[2]!;
  const known = answers.flatMap(({ message, call }) => call === null ? [] : [{ message, call }]);
  known.sort((a, b) => compare(a.call, b.call));
  const unknown = answers.filter(({ call }) => call === null);
  unknown.sort((a, b) =>
    a.message.toolCallId < b.message.toolCallId ? -1 : Number(a.message.toolCallId > b.message.toolCallId)
  );
  return [...known, ...unknown].map(({ message, call }) => ({
    kind: "tool",
    hash: digestOf(
      "tool",
      call === null ? [message.toolCallId] : call.map(String),
      segmentsOf(message.content),
    ),
    message: message.source,
    end,
    text: textWithImages(message.content),
  }));
}
