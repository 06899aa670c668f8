/** What the rest of the project may know of tool-call formats: their names. */

export { isToolCallParser, TOOL_CALL_PARSERS } from "./tool_call_parsers.ts";
