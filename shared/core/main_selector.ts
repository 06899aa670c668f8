/** Whether a request bears the marks by which a task tells its main line. It knows header names, not HTTP. */

import { type Conversation, textOf } from "./message.ts";
import type { MainSelector } from "./task.ts";

/** True where every mark that the selector names is there; null where there is no selector. `header` gives a header's value or null. */
export function matchesMain(
  selector: MainSelector | null,
  request: { readonly conversation: Conversation; readonly header: (name: string) => string | null },
): boolean | null {
  if (selector === null) return null;
  const { messages, tools } = request.conversation;
  const { header = {}, toolsInclude, systemIncludes } = selector;
  return Object.entries(header).every(([name, value]) => request.header(name) === value) &&
    (toolsInclude === undefined || tools.some((tool) => tool.name === toolsInclude)) &&
    (systemIncludes === undefined ||
      messages.some((message) => message.role === "system" && textOf(message.content).includes(systemIncludes)));
}
