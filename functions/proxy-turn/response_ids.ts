/**
 * Ids of the Responses API, made from the digits of an answer and read back: they name the same turn after a restart and
 * in another process. It looks nothing up.
 */

/** What an item id names. `index` counts the items of that kind in one answer. */
export interface ItemName {
  readonly answerId: string;
  readonly kind: ItemKind;
  readonly index: number;
}

/** Kinds of items that are served. */
export type ItemKind = "reasoning" | "message" | "function_call";

const PREFIXES: Readonly<Record<ItemKind, string>> = { reasoning: "rs", message: "msg", function_call: "fc" };
/** The first item of a kind has no number, but for calls, of which there may be many. */
const ITEM_ID = /^(rs|msg|fc)_([0-9a-f]{24})(?:_(\d{1,6}))?$/;
const RESPONSE_ID = /^resp_([0-9a-f]{24})$/;
const ENCRYPTED = "verbatim:";

/** The id of an answer. */
export function responseId(answerId: string): string {
  return `resp_${answerId}`;
}

/** The digits in a response's id, or null where it is none of ours. */
export function readResponseId(id: string): string | null {
  return RESPONSE_ID.exec(id)?.[1] ?? null;
}

/** The id of an item. */
export function itemId({ answerId, kind, index }: ItemName): string {
  const id = `${PREFIXES[kind]}_${answerId}`;
  return index === 0 && kind !== "function_call" ? id : `${id}_${index}`;
}

/** What an item's id names, or null where it is none of ours. */
export function readItemId(id: string): ItemName | null {
  const [, prefix, answerId, index] = ITEM_ID.exec(id) ?? [];
  if (answerId === undefined) return null;
  const kind = prefix === "rs" ? "reasoning" : prefix === "msg" ? "message" : "function_call";
  return { answerId, kind, index: Number(index ?? "0") };
}

/** What stands in the place of encrypted reasoning: the item's own id, unreadable at a glance. It holds no text. */
export function encryptedContent(id: string): string {
  return btoa(ENCRYPTED + id);
}

/** The item id in encrypted content, or null where it was made elsewhere. */
export function readEncryptedContent(text: string): string | null {
  try {
    const plain = atob(text);
    return plain.startsWith(ENCRYPTED) ? plain.slice(ENCRYPTED.length) : null;
  } catch {
    return null;
  }
}
