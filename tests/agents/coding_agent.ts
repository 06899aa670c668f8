/** What the tests need to know of a coding agent: how it is set up and started, and how its own tools are called. */

import type { AgentPackage } from "./agent_packages.ts";

/** The gateway as one agent sees it. */
export interface Access {
  /** Ends in `/v1`. */
  readonly openaiBaseUrl: string;
  /** Does not. */
  readonly anthropicBaseUrl: string;
  readonly key: string;
  /** From how many tokens on the agent is to shorten its history; null: never in a job as short as these. */
  readonly compactAtTokens: number | null;
}

/** Folders of one run, both empty at first but for the job's files. */
export interface Places {
  /** The agent's private home. */
  readonly home: string;
  /** Where it works. */
  readonly work: string;
}

/** How a process is started. */
export interface Launch {
  /** Path inside the package's folder: a script for Node, or a program. */
  readonly entry: string;
  readonly runsOnNode: boolean;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Calls of the agent's own tools, in the markup of the scripted model. */
export interface ToolCalls {
  read(path: string): string;
  /** Replaces the one occurrence of a text in a file. */
  edit(path: string, change: { readonly from: string; readonly to: string }): string;
  /** Runs a shell command in the work folder. */
  run(command: string): string;
}

/** A coding agent. */
export interface CodingAgent {
  readonly package: AgentPackage;
  readonly calls: ToolCalls;
  /** What its requests for a summary of the history say, and nothing else does. */
  readonly asksForSummary: RegExp;
  /** What it says to the model after the summary where the summary itself stands elsewhere; null: they come together. */
  readonly goesOn: RegExp | null;
  /** Writes its settings and says how to start it on a job. */
  launch(prompt: string, places: Places, access: Access): Promise<Launch>;
}
