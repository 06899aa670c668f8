/** opencode: chat completions by the Vercel AI SDK, its provider described in the work folder. */

import { join } from "node:path";
import { toolCall } from "../e2e/replies.ts";
import type { CodingAgent } from "./coding_agent.ts";

const CONTEXT_TOKENS = 131_072;
const OUTPUT_TOKENS = 4096;

/** `opencode-ai`. */
export const OPENCODE: CodingAgent = {
  package: { name: "opencode-ai", version: "1.18.33" },
  calls: {
    read: (path) => toolCall("read", { filePath: path }),
    edit: (path, { from, to }) => toolCall("edit", { filePath: path, oldString: from, newString: to }),
    run: (command) => toolCall("bash", { command, description: "Runs it" }),
  },
  asksForSummary: /You are a context summarization agent/,
  goesOn: /Continue if you have next steps/,
  async launch(prompt, { work }, access) {
    const { compactAtTokens } = access;
    const limit = compactAtTokens === null
      ? { context: CONTEXT_TOKENS, output: OUTPUT_TOKENS }
      : { context: compactAtTokens + OUTPUT_TOKENS, output: OUTPUT_TOKENS };
    const provider = {
      npm: "@ai-sdk/openai-compatible",
      options: { baseURL: access.openaiBaseUrl, apiKey: access.key },
      models: { default: { name: "Default", limit } },
    };
    await Deno.writeTextFile(
      join(work, "opencode.json"),
      JSON.stringify({ provider: { gateway: provider }, permission: { "*": "allow" } }),
    );
    return {
      entry: "bin/opencode.exe",
      runsOnNode: false,
      args: ["run", "-m", "gateway/default", prompt],
      environment: {
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      },
    };
  },
};
