/** Answers that a task has given, by the ids under which the Responses API served them. It reads no requests. */

import { keptMessages } from "../../shared/core/kept_input.ts";
import type { Message } from "../../shared/core/message.ts";
import type { Turn } from "../../shared/core/turn.ts";
import { invalid } from "./read_json.ts";
import { readItemId, readResponseId } from "./response_ids.ts";
import type { ServedItem } from "./responses_messages.ts";

/** The answers of a task's turns. Looking one up costs the same however many there are. */
export class EarlierAnswers {
  readonly #turns: readonly Turn[];
  #byId: ReadonlyMap<string, Turn> | null = null;

  constructor(turns: readonly Turn[]) {
    this.#turns = turns;
  }

  /** The item of this id, or null. */
  item(id: string): ServedItem | null {
    const name = readItemId(id);
    const reply = name === null ? undefined : this.#turn(name.answerId)?.detail.reply;
    if (name === null || reply === undefined) return null;
    switch (name.kind) {
      case "reasoning":
        // All reasoning belongs to the first item; a further one only marks where more of it was served.
        return reply.reasoning === null ? null : { type: "reasoning", text: name.index === 0 ? reply.reasoning : "" };
      case "message":
        return name.index === 0 ? { type: "message", text: reply.content } : null;
      case "function_call": {
        const call = reply.toolCalls[name.index];
        return call === undefined ? null : { type: "function_call", call };
      }
    }
  }

  /**
   * The conversation up to and including an answer, without its instructions, which do not carry over. An id that names
   * no answer of this task, or one that was not stored, is `invalid_request`.
   */
  conversation(id: string, field: string): Message[] {
    const answerId = readResponseId(id);
    const turn = answerId === null ? undefined : this.#turn(answerId);
    if (turn === undefined) throw invalid(field, `no response ${JSON.stringify(id)} was given to this task`);
    const messages = keptMessages(this.#turns, turn.record.turn);
    if (messages === null) {
      throw invalid(field, `the conversation of ${JSON.stringify(id)} was not stored: send it whole as input`);
    }
    const own = messages.filter((message) => message.source >= 0);
    const source = (own.at(-1)?.source ?? -1) + 1;
    return [...own, { ...turn.detail.reply, source }];
  }

  #turn(answerId: string): Turn | undefined {
    this.#byId ??= new Map(this.#turns.map((turn) => [turn.record.answerId, turn]));
    return this.#byId.get(answerId);
  }
}
