/** What the rest of the project may know of reasoning formats: their names. */

export { isReasoningParser, REASONING_PARSERS } from "./reasoning_parsers.ts";
