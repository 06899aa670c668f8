/** Qwen Code: chat completions, its endpoint in the environment. */

import { join } from "node:path";
import { toolCall } from "../e2e/replies.ts";
import type { CodingAgent } from "./coding_agent.ts";

const CONTEXT_TOKENS = 131_072;

/** `@qwen-code/qwen-code`. */
export const QWEN_CODE: CodingAgent = {
  package: { name: "@qwen-code/qwen-code", version: "0.24.4" },
  calls: {
    read: (path) => toolCall("read_file", { file_path: path }),
    edit: (path, { from, to }) => toolCall("edit", { file_path: path, old_string: from, new_string: to }),
    run: (command) => toolCall("run_shell_command", { command, is_background: false }),
  },
  asksForSummary: /summarizes a conversation when its context window|produce the <state_snapshot> XML/,
  goesOn: null,
  async launch(prompt, { home }, access) {
    const settings = join(home, ".qwen");
    await Deno.mkdir(settings, { recursive: true });
    const { compactAtTokens } = access;
    await Deno.writeTextFile(
      join(settings, "settings.json"),
      JSON.stringify({
        model: { generationConfig: { contextWindowSize: CONTEXT_TOKENS } },
        context: { autoCompactThreshold: compactAtTokens === null ? 1 : compactAtTokens / CONTEXT_TOKENS },
      }),
    );
    return {
      entry: "cli-entry.js",
      runsOnNode: true,
      args: ["--auth-type", "openai", "--approval-mode", "yolo", "-p", prompt],
      environment: {
        OPENAI_BASE_URL: access.openaiBaseUrl,
        OPENAI_API_KEY: access.key,
        OPENAI_MODEL: "default",
        QWEN_TELEMETRY_ENABLED: "0",
        QWEN_CODE_SUPPRESS_YOLO_WARNING: "1",
      },
    };
  },
};
