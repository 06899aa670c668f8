/** The latest requests of a task, one a line of conversation: the next request repeats most of one of them. */

import { type KnownJson, sharedItems } from "../../core/growing_json.ts";
import type { KnownPrompt } from "../../core/locate.ts";
import type { Message } from "../../core/message.ts";
import { textOf } from "../../core/message.ts";
import type { RequestUnits } from "../../core/request_units.ts";

/** A request that became a turn. */
export interface KeptRequest {
  /** Its body as parsed; null where it holds no list that could grow. */
  readonly body: KnownJson | null;
  /** Its units. */
  readonly request: RequestUnits;
  /** Where it ends in the task's forest. */
  readonly prompt: KnownPrompt;
}

/** Lines of conversation that are kept of a task: the main one, and helpers that run beside it. */
const MOST_LINES = 4;

/** Keeps the latest request of each line. */
export class KeptRequests {
  /** The latest used last. */
  #lines: readonly { readonly kept: KeptRequest; readonly bytes: number }[] = [];

  /** What they weigh together, roughly. */
  get bytes(): number {
    return this.#lines.reduce((sum, line) => sum + line.bytes, 0);
  }

  /** The request that a body repeats most of, else the latest; null where none is kept. */
  nearest(body: Uint8Array): KeptRequest | null {
    let nearest = this.#lines.at(-1)?.kept ?? null;
    let most = 0;
    for (const { kept } of this.#lines) {
      const shared = kept.body === null ? 0 : sharedItems(body, kept.body);
      if (shared > most) [nearest, most] = [kept, shared];
    }
    return nearest;
  }

  /** Keeps a request, in the place of the one of its line. */
  keep(kept: KeptRequest): void {
    const others = this.#lines.filter((line) => !goesOn(kept, line.kept));
    this.#lines = [...others.slice(1 - MOST_LINES), { kept, bytes: bytesOf(kept) }];
  }
}

/** Whether a request repeats the first half of an earlier one: they are of one line, whatever was edited near its end. */
function goesOn({ request }: KeptRequest, earlier: KeptRequest): boolean {
  const half = Math.max(0, Math.floor(earlier.request.chain.length / 2) - 1);
  return request.chain[half] === earlier.request.chain[half];
}

/** The body's bytes; of the messages two bytes a character at most, and something for each of them. */
function bytesOf({ body, request }: KeptRequest): number {
  return (body?.bytes.length ?? 0) + messageBytes(request.messages);
}

/** What messages weigh at most. */
export function messageBytes(messages: readonly Message[]): number {
  let characters = 0;
  for (const message of messages) {
    characters += typeof message.content === "string" ? message.content.length : textOf(message.content).length;
    if (message.role !== "assistant") continue;
    characters += message.form.length + (message.reasoning?.length ?? 0);
    for (const call of message.toolCalls) characters += call.arguments.length;
  }
  return 2 * characters + 512 * messages.length;
}
