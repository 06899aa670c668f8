/** Llama 4 and others: a list of Python calls, between `<|python_start|>` and `<|python_end|>` or bare. */

import { beginsCallList } from "../bare_list.ts";
import { CallBlock, type MachineContext } from "../call_block.ts";
import { COMMON_KEYS } from "../json_call.ts";
import { ListReader, type ListSyntax } from "../list_machine.ts";
import { accept, skipSpace } from "../reading.ts";
import { LLAMA_STOPS } from "../stop_tokens.ts";
import type { Step } from "../text_cursor.ts";
import type { BlockReader, ToolCallFormat } from "../tool_call_format.ts";

const END = "<|python_end|>";
const SYNTAX: ListSyntax = { starts: ["<|python_start|>"], end: END, keys: COMMON_KEYS, python: true };

function readerOf(context: MachineContext): BlockReader {
  const list = new ListReader(context, SYNTAX);
  return {
    starts: list.starts,
    candidates: ["["],
    readBlock: (start) => list.readBlock(start),
    readCandidate: () => readBare(context, list),
  };
}

function* readBare(context: MachineContext, list: ListReader): Step<boolean> {
  const { cursor } = context;
  if (!(yield* beginsCallList(cursor))) return false;
  const block = new CallBlock(context);
  cursor.position++;
  yield* list.readList(block);
  if (block.hasCall) {
    yield* skipSpace(cursor);
    yield* accept(cursor, [END]);
    block.markup();
  }
  block.close("malformed");
  return true;
}

export const PYTHONIC: ToolCallFormat = {
  names: ["pythonic"],
  stopTokens: LLAMA_STOPS,
  machine: { type: "blocks", reader: readerOf },
};
