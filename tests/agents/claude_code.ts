/** Claude Code: Anthropic's messages, its endpoint in the environment, without `/v1`. */

import { toolCall } from "../e2e/replies.ts";
import type { CodingAgent } from "./coding_agent.ts";

const CONTEXT_TOKENS = 200_000;
/** What it takes percents of: the context less what it keeps back for a reply. */
const USABLE_TOKENS = 180_000;

/** `@anthropic-ai/claude-code`. */
export const CLAUDE_CODE: CodingAgent = {
  package: { name: "@anthropic-ai/claude-code", version: "2.1.332" },
  calls: {
    read: (path) => toolCall("Read", { file_path: path }),
    edit: (path, { from, to }) => toolCall("Edit", { file_path: path, old_string: from, new_string: to }),
    run: (command) => toolCall("Bash", { command, description: "Runs it" }),
  },
  asksForSummary: /create a detailed summary of the conversation/,
  goesOn: null,
  launch(prompt, _places, access) {
    const { compactAtTokens } = access;
    return Promise.resolve({
      entry: "bin/claude.exe",
      runsOnNode: false,
      args: ["-p", prompt, "--dangerously-skip-permissions"],
      environment: {
        ANTHROPIC_BASE_URL: access.anthropicBaseUrl,
        ANTHROPIC_API_KEY: access.key,
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(CONTEXT_TOKENS),
        ANTHROPIC_MODEL: "default",
        ANTHROPIC_SMALL_FAST_MODEL: "default",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_TELEMETRY: "1",
        DISABLE_AUTOUPDATER: "1",
        // As root it wants to be told that nothing outside can be harmed.
        IS_SANDBOX: "1",
        ...(compactAtTokens === null
          ? {}
          : { CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: String(100 * compactAtTokens / USABLE_TOKENS) }),
      },
    });
  },
};
