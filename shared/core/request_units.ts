/** One request as the history sees it: units, and digests of the rest of what is rendered. */

import { canonicalJson } from "./canonical_json.ts";
import { digest, digestOf } from "./digest.ts";
import type { Conversation, Json, Message, ToolDefinition } from "./message.ts";
import { type Unit, unitsOf } from "./message_signature.ts";
import { sharedMessages } from "./same_message.ts";

/** A request, made ready to be located. */
export interface RequestUnits {
  /** The messages as read. */
  readonly messages: readonly Message[];
  /** Their units. */
  readonly units: readonly Unit[];
  /** After each unit, a digest of all the units up to it. */
  readonly chain: readonly string[];
  /** Number of entries in the request's `messages` or `input`, as far as they are read. */
  readonly entries: number;
  /** The tool list as text: equal texts, equal lists. */
  readonly toolsText: string;
  /** Digest of the tool list; order counts, key order and cache markers do not. */
  readonly toolsDigest: string;
  /** Digest of the template settings. */
  readonly settingsDigest: string;
  /** Whether tools were offered. */
  readonly hasTools: boolean;
  /** Whether it bears the marks by which the task tells its main line; null where it names none. */
  readonly selected: boolean | null;
}

/**
 * Makes a request ready to be located. `selected` as in {@linkcode RequestUnits}. `known`: an earlier request, of which
 * this one may repeat a part; it costs less then and is the same.
 */
export function requestUnits(
  conversation: Conversation,
  options: { selected?: boolean | null; known?: RequestUnits | null } = {},
): RequestUnits {
  const known = options.known ?? null;
  const toolsText = textOfTools(conversation);
  const messages = known === null ? conversation.messages : withKnown(conversation.messages, known.messages);
  const units = unitsOf(messages, known);
  return {
    messages,
    units,
    chain: chainOf(units, known),
    entries: (conversation.messages.at(-1)?.source ?? -1) + 1,
    toolsText,
    toolsDigest: known?.toolsText === toolsText ? known.toolsDigest : toolsDigest(conversation),
    settingsDigest: valueDigest({ ...conversation.settings }),
    hasTools: conversation.tools.length > 0,
    selected: options.selected ?? null,
  };
}

/** The same messages, the leading ones that are known as the objects known: a long text is then kept once, and not anew with every request. */
function withKnown(messages: readonly Message[], known: readonly Message[]): readonly Message[] {
  const shared = sharedMessages(messages, known);
  return [...known.slice(0, shared), ...messages.slice(shared)];
}

/** Number of leading units that are not only equal but the very same objects: what is known of one holds for the other. */
export function unitsInCommon(one: readonly Unit[], other: readonly Unit[]): number {
  const most = Math.min(one.length, other.length);
  let count = 0;
  while (count < most && one[count] === other[count]) count++;
  return count;
}

function chainOf(units: readonly Unit[], known: RequestUnits | null): string[] {
  const chain = known === null ? [] : known.chain.slice(0, unitsInCommon(units, known.units));
  for (let at = chain.length; at < units.length; at++) chain.push(digestOf(chain[at - 1] ?? "", units[at]!.hash));
  return chain;
}

/** What a path is rendered with beside its messages: a series extends only under the same key. */
export function renderKey(request: { readonly toolsDigest: string; readonly settingsDigest: string }): string {
  return `${request.toolsDigest}.${request.settingsDigest}`;
}

/** Digest of any JSON value, key order aside. */
export function valueDigest(value: Json): string {
  return digest(canonicalJson(value) ?? JSON.stringify(value));
}

/** As JSON text, which has null for a number beyond all doubles. Where there is a null, the text is one that tells them apart. */
function textOfTools({ tools }: Conversation): string {
  const text = JSON.stringify(tools);
  return text.includes("null") ? canonicalJson(tools.map(valueOfTool)) ?? text : text;
}

function toolsDigest({ tools }: Conversation): string {
  return digestOf("tools", tools.map((tool) => valueDigest(valueOfTool(tool))));
}

function valueOfTool(tool: ToolDefinition): Json {
  return {
    name: tool.name,
    description: tool.description ?? null,
    parameters: tool.parameters ?? null,
    raw: { ...tool.raw },
  };
}
