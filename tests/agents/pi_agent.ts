/** pi against the gateway. */

import { testAgent } from "./agent_tests.ts";
import { PI } from "./pi.ts";

testAgent(PI, "small", {
  echoes: ["representation", "representation", "representation", "representation"],
  sideCalls: 0,
  retries: 2,
  contextError: { exitCode: 1, reason: null, notes: [] },
  compaction: { exitCode: 0, reason: "rewritten at message 1", notes: [] },
});
