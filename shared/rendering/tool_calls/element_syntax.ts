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
  /** The tag that opens an element named like the argument; such elements nest. `{key}` as above. */
  readonly valueStart?: string;
  /** Markers beside the format's own that show that a call is over without its end. */
  readonly bounds?: readonly string[];
  /** Values may be written as CDATA sections. */
  readonly cdata?: true;
  /** Values stand on lines of their own: one newline on each side is the format's. */
  readonly valueOnLines?: true;
  /** The body may be the argument object as JSON. */
  readonly jsonBody?: true;
  /** Types a value where that is more than typing one text. */
  readonly typeOne?: TypeOne;
}

/** A tag of an argument's own, for its key. */
export function tagFor(template: string, key: string): string {
  return template.replace("{key}", () => key);
}

const ATTRIBUTE = /([A-Za-z_][\w.:-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

/** The attributes of a tag, as written. */
export function attributesOf(tag: string): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const [, key = "", quoted, single] of tag.matchAll(ATTRIBUTE)) attributes.set(key, quoted ?? single ?? "");
  return attributes;
}

const CDATA_START = "<![CDATA[";
const CDATA_END = "]]>";

/** A text with its CDATA sections replaced by what they hold. */
export function unwrapCdata(text: string): string {
  const parts: string[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(CDATA_START, position);
    const end = start < 0 ? -1 : text.indexOf(CDATA_END, start + CDATA_START.length);
    if (end < 0) break;
    parts.push(text.slice(position, start), text.slice(start + CDATA_START.length, end));
    position = end + CDATA_END.length;
  }
  parts.push(text.slice(position));
  return parts.join("");
}
