/** Llama 3: JSON calls behind `<|python_tag|>`, or bare at the beginning of the answer, separated by semicolons. */

import { COMMON_KEYS, type NamedKeys } from "../json_call.ts";
import { CallBlock, type MachineContext } from "../call_block.ts";
import { ListReader, type ListSyntax } from "../list_machine.ts";
import { peek, skipSpace } from "../reading.ts";
import { LLAMA_STOPS } from "../stop_tokens.ts";
import type { Step } from "../text_cursor.ts";
import type { BlockReader, ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: ListSyntax = { starts: ["<|python_tag|>"], end: null, keys: COMMON_KEYS, separator: ";" };

/** A bare object is a call only if it has arguments: an answer may be JSON with a name in it. */
const BARE_KEYS: NamedKeys = { ...COMMON_KEYS, needsArguments: true };

function readerOf(context: MachineContext): BlockReader {
  const list = new ListReader(context, SYNTAX);
  return {
    starts: list.starts,
    readBlock: (start) => list.readBlock(start),
    readOpening: () => readOpening(context, list),
  };
}

function* readOpening(context: MachineContext, list: ListReader): Step<void> {
  const { cursor, sink } = context;
  const from = cursor.offset;
  cursor.keep(from);
  yield* skipSpace(cursor);
  sink.content(cursor.slice(from, cursor.offset));
  cursor.release();
  if ((yield* peek(cursor, ["{"])) === null) return;
  const block = new CallBlock(context);
  yield* list.readBare(block, BARE_KEYS);
  block.close("nothing");
}

export const LLAMA3: ToolCallFormat = {
  names: ["llama3"],
  stopTokens: LLAMA_STOPS,
  machine: { type: "blocks", reader: readerOf },
};
