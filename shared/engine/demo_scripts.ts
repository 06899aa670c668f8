/** Scripts by name, for trying things out: what an agent's model might say. They are data and nothing more. */

import type { Script } from "./script.ts";

const CALL_LS = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls -a"}}\n</tool_call>';
const CALL_CAT = '<tool_call>\n{"name": "bash", "arguments": {"command": "cat README.md"}}\n</tool_call>';

/** The scripts of `--script`. */
export const DEMO_SCRIPTS: Readonly<Record<string, Script>> = {
  /** Two tool calls and an answer for whoever offers tools, a greeting for everybody else. */
  demo: {
    rules: [
      {
        match: "<tools>",
        completions: [
          `I will look around first.\n${CALL_LS}`,
          `There is a README; I will read it.\n${CALL_CAT}`,
          "I have looked at the files and the README. The task is done.",
        ],
      },
      { match: /(hello|hi)\b/i, completions: ["Hello! What shall we do?"], retrigger: true },
    ],
  },
  /** The same with a policy that wanders: samples of one prompt differ. */
  wander: {
    sharpness: 5,
    rules: [
      { match: "<tools>", completions: [CALL_LS, CALL_CAT, "Done."] },
      { match: /./s, completions: ["I am not sure, but I will try."], retrigger: true },
    ],
  },
};

/** For development: the model says whatever follows "say: " in the newest message, tool calls too; anything else gets noise. */
export const SAY_SCRIPT: Script = {
  rules: [{
    match: /\bsay: (?=\S)/,
    retrigger: true,
    completions: [({ newest }) => /.*\bsay: ([^]*?)(?:<\|im_end\|>|$)/s.exec(newest)?.[1] ?? ""],
  }],
};
