/** Server-sent events that carry their type twice, as their name and in their data: Anthropic's and the Responses API's. */

/** One event. */
export function namedFrame(value: { readonly type: string; readonly [key: string]: unknown }): string {
  return `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
}
