/** Codex: OpenAI Responses, its provider described in a file. It has no tools but a shell: it reads and edits by commands. */

import { join } from "node:path";
import { toolCall } from "../e2e/replies.ts";
import type { CodingAgent } from "./coding_agent.ts";

const CONTEXT_TOKENS = 131_072;

/** `@openai/codex`. */
export const CODEX: CodingAgent = {
  package: { name: "@openai/codex", version: "0.171.0" },
  calls: {
    read: (path) => toolCall("exec_command", { cmd: `cat ${path}` }),
    edit: (path, { from, to }) => toolCall("exec_command", { cmd: `sed -i 's|${from}|${to}|' ${path}` }),
    run: (command) => toolCall("exec_command", { cmd: command }),
  },
  asksForSummary: /CONTEXT CHECKPOINT COMPACTION/,
  goesOn: null,
  async launch(prompt, { home }, access) {
    const settings = join(home, ".codex");
    await Deno.mkdir(settings, { recursive: true });
    await Deno.writeTextFile(
      join(settings, "config.toml"),
      `model = "default"
model_provider = "gateway"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
model_context_window = ${CONTEXT_TOKENS}
${access.compactAtTokens === null ? "" : `model_auto_compact_token_limit = ${access.compactAtTokens}`}
[model_providers.gateway]
name = "gateway"
base_url = "${access.openaiBaseUrl}"
env_key = "GATEWAY_KEY"
wire_api = "responses"
`,
    );
    return {
      entry: "bin/codex.js",
      runsOnNode: true,
      args: ["exec", "--skip-git-repo-check", prompt],
      environment: { GATEWAY_KEY: access.key },
    };
  },
};
