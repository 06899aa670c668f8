/** opencode against the gateway. */

import { testAgent } from "./agent_tests.ts";
import { OPENCODE } from "./opencode.ts";

testAgent(OPENCODE, "large", {
  echoes: ["representation", "representation", "representation", "representation"],
  sideCalls: 1,
  retries: 2,
  contextError: { exitCode: 1, reason: "rewritten at message 1", notes: [] },
  compaction: { exitCode: 0, reason: "rewritten at message 1", notes: [] },
});
