/** Codex against the gateway. */

import { testAgent } from "./agent_tests.ts";
import { CODEX } from "./codex.ts";

testAgent(CODEX, "large", {
  echoes: ["exact", "exact", "exact", "exact"],
  sideCalls: 0,
  retries: 1,
  contextError: { exitCode: 1, reason: null, notes: [] },
  compaction: { exitCode: 0, reason: "rewritten at message 4", notes: [] },
});
