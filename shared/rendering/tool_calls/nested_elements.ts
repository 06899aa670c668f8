/** Types a value whose objects and arrays are written as elements within it. It knows the token that marks a tag as data only. */

import type { Json } from "../../core/message.ts";
import type { ArgumentSchema } from "./argument_schema.ts";
import { isSpace } from "./reading.ts";
import type { MessageSink } from "./message_sink.ts";
import { typePlain } from "./tool_table.ts";

/** What a value is typed by. */
export interface NestedOptions {
  /** The token before each tag. */
  readonly tag: string;
  readonly schema: ArgumentSchema;
  readonly property: Json;
  readonly sink: MessageSink;
}

/** How deep elements may nest; what is deeper is text. */
const DEEPEST = 64;

interface Element {
  readonly name: string;
  readonly text: string;
}

/** The value as JSON text: elements become members or items where the schema allows an object or array, text is typed as text. */
export function typeElement(text: string, options: NestedOptions, depth = 0): string {
  const { tag, schema, property, sink } = options;
  const types = schema.typesOf(property);
  const elements = depth < DEEPEST && (types?.has("object") || types?.has("array")) ? elementsOf(text, tag) : null;
  if (elements === null) return typePlain(text, schema, property, sink);
  if (types?.has("array") && (!types.has("object") || elements.every(({ name }) => name === "item"))) {
    const items = schema.itemsOf(property) ?? null;
    const values = elements.map((element) => typeElement(element.text, { ...options, property: items }, depth + 1));
    return `[${values.join(",")}]`;
  }
  const members = new Map<string, string>();
  for (const { name, text: value } of elements) {
    const member = schema.propertyOf(name, property) ?? null;
    members.set(name, typeElement(value, { ...options, property: member }, depth + 1));
  }
  return `{${[...members].map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(",")}}`;
}

/** The elements that make up a text, white space between them aside; null if there is other text, or no element. */
function elementsOf(text: string, tag: string): Element[] | null {
  const elements: Element[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(tag, position);
    if (!isSpace(text.slice(position, start < 0 ? text.length : start))) return null;
    if (start < 0) return elements.length > 0 ? elements : null;
    const head = /^<([^\s<>/]+)>/.exec(text.slice(start + tag.length, start + tag.length + 256));
    if (head === null) return null;
    const [opening, name = ""] = head;
    const from = start + tag.length + opening.length;
    const to = closingIndex(text, from, `${tag}<${name}>`, `${tag}</${name}>`);
    if (to < 0) return null;
    elements.push({ name, text: text.slice(from, to) });
    position = to + tag.length + name.length + 3;
  }
}

/** Where the element that is open at `from` closes; elements of its own name within it close first. */
function closingIndex(text: string, from: number, open: string, close: string): number {
  let depth = 0;
  let position = from;
  for (;;) {
    const end = text.indexOf(close, position);
    if (end < 0) return -1;
    depth += text.slice(position, end).split(open).length - 1;
    if (depth === 0) return end;
    depth--;
    position = end + close.length;
  }
}
