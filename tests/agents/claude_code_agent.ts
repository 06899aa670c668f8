/** Claude Code against the gateway. */

import { testAgent } from "./agent_tests.ts";
import { CLAUDE_CODE } from "./claude_code.ts";

testAgent(CLAUDE_CODE, "large", {
  echoes: ["exact", "exact", "args_rewritten", "exact"],
  sideCalls: 0,
  retries: 1,
  contextError: { exitCode: 1, reason: null, notes: [] },
  compaction: { exitCode: 0, reason: "rewritten at message 0", notes: [] },
});
