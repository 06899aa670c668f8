/**
 * The job that every client does: three turns with awkward replies, then words. Arguments are oddly spaced, escaped and
 * numbered, one reply calls twice at once, one has neither text nor reasoning.
 */

/** What starts it. */
export const REQUEST = "Please do the job 🧰, é and all.";
/** Its last words, as sampled. */
export const LAST_WORDS = "All done: 漢字.";

/** Arguments as the model writes them, and what a client makes of them. */
export const ODD_ARGUMENTS = '{"path":  "caf\\u00e9 \\ud83d\\ude00 <b>",\n "count": 60.0, "big": 18446744073709551616}';

function call(name: string, args: string): string {
  return `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
}

/** The model's replies, in order. */
export const REPLIES: readonly string[] = [
  `<think>\nFirst I think.\nOn two lines.\n\n</think>\n\nLet me look.  \n\n${call("look", ODD_ARGUMENTS)}`,
  `<think>\nBoth at once.\n</think>\n\nNow both:\n${call("look", '{"path": "a", "count":1e3, "big":0}')}\n${
    call("note", '{ "text" : "\\"quoted\\" \\\\ back" }')
  }`,
  call("note", '{"text": ""}'),
  `<think>\nNothing is left.\n</think>\n\n${LAST_WORDS}`,
];

/** A tool, its arguments as a JSON schema. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly parameters: {
    type: "object";
    properties: { [name: string]: { type: "string" | "number" } };
    required: string[];
    additionalProperties: false;
  };
}

/** The tools the job takes. */
export const TOOLS: readonly Tool[] = [
  {
    name: "look",
    description: "Looks at a path.",
    parameters: {
      type: "object",
      properties: { path: { type: "string" }, count: { type: "number" }, big: { type: "number" } },
      required: ["path", "count", "big"],
      additionalProperties: false,
    },
  },
  {
    name: "note",
    description: "Notes a text.",
    parameters: {
      type: "object",
      properties: { text: { type: "string" } },
      required: ["text"],
      additionalProperties: false,
    },
  },
];

/** What a tool answers. */
export function runTool(name: string, args: unknown): string {
  return `${name} was given ${JSON.stringify(args)}\n`;
}

/** How often each tool is called. */
export const CALLS: readonly string[] = ["look", "look", "note", "note"];
