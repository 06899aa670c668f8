/** The data that describes a format of elements. */

import type { Wrapper } from "./call_section.ts";
import type { TypeOne } from "./tool_table.ts";

/** How a tag that names something begins and ends: `open`, the name or attributes, `close`. */
export interface TagHead {
  readonly open: string;
  /** The first character that can't be part of it: a global pattern of one. */
  readonly stop: RegExp;
  /** What ends it, or "" where the name goes on to whatever comes next. */
  readonly close: string;
  /** Another literal that must follow, white space aside. */
  readonly then?: string;
  /** The attribute with the name; absent where the text itself is the name. */
  readonly attribute?: string;
  /** What no name contains. */
  readonly forbidden?: RegExp;
}

/** A format of elements. */
export interface ElementSyntax {
  readonly wrapper: Wrapper | null;
  /** Literals before a call's own tag, which may be missing, and after its end. */
  readonly before?: readonly [string, ...string[]];
  readonly after?: string;
  readonly call: TagHead;
  readonly callEnd: string;
  /** A literal that may follow the call's name. */
  readonly afterName?: string;
  readonly argument: TagHead;
  /** Closes a value; `{key}` stands for the argument's key. */
  readonly valueEnd: string;
  /** Values stand on lines of their own: one newline on each side is the format's. */
  readonly valueOnLines?: true;
  /** The body may be the argument object as JSON. */
  readonly jsonBody?: true;
  /** Types a value where that is more than typing one text. */
  readonly typeOne?: TypeOne;
}

/** The closing tag of an argument's value. */
export function closingOf(syntax: ElementSyntax, key: string): string {
  return syntax.valueEnd.replace("{key}", () => key);
}

const ATTRIBUTE = /([A-Za-z_][\w.:-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

/** The attributes of a tag, as written. */
export function attributesOf(tag: string): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const [, key = "", quoted, single] of tag.matchAll(ATTRIBUTE)) attributes.set(key, quoted ?? single ?? "");
  return attributes;
}
