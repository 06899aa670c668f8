/** Qwen Code against the gateway. */

import { testAgent } from "./agent_tests.ts";
import { QWEN_CODE } from "./qwen_code.ts";

testAgent(QWEN_CODE, "small", {
  echoes: ["representation", "representation", "representation", "representation"],
  sideCalls: 0,
  retries: 1,
  contextError: { exitCode: 0, reason: "rewritten at message 1", notes: [] },
  compaction: { exitCode: 0, reason: "rewritten at message 1", notes: [] },
});
