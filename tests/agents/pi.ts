/** pi: chat completions, its provider described in a file. */

import { join } from "node:path";
import { toolCall } from "../e2e/replies.ts";
import type { CodingAgent } from "./coding_agent.ts";

const CONTEXT_TOKENS = 131_072;

/** `@earendil-works/pi-coding-agent`. */
export const PI: CodingAgent = {
  package: { name: "@earendil-works/pi-coding-agent", version: "1.6.0" },
  calls: {
    read: (path) => toolCall("read", { path }),
    edit: (path, { from, to }) => toolCall("edit", { path, edits: [{ oldText: from, newText: to }] }),
    run: (command) => toolCall("bash", { command }),
  },
  asksForSummary: /context summarization assistant/,
  goesOn: null,
  async launch(prompt, { home }, access) {
    const settings = join(home, ".pi", "agent");
    await Deno.mkdir(settings, { recursive: true });
    const model = {
      id: "default",
      name: "Default",
      reasoning: true,
      input: ["text"],
      contextWindow: CONTEXT_TOKENS,
      maxTokens: 4096,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    };
    const provider = {
      baseUrl: access.openaiBaseUrl,
      api: "openai-completions",
      apiKey: access.key,
      models: [model],
    };
    await Deno.writeTextFile(join(settings, "models.json"), JSON.stringify({ providers: { gateway: provider } }));
    const { compactAtTokens } = access;
    const compaction = compactAtTokens === null
      ? { enabled: false }
      : { enabled: true, reserveTokens: CONTEXT_TOKENS - compactAtTokens, keepRecentTokens: 1 };
    await Deno.writeTextFile(join(settings, "settings.json"), JSON.stringify({ compaction }));
    return {
      entry: "dist/bundle/cli.js",
      runsOnNode: true,
      args: ["--provider", "gateway", "--model", "default", "-p", prompt],
      environment: { PI_OFFLINE: "1", PI_TELEMETRY: "0" },
    };
  },
};
