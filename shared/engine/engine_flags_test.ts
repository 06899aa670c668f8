/** Flags of the engine as a process. */

import assert from "node:assert/strict";
import { DEMO_SCRIPTS } from "./demo_scripts.ts";
import { ENGINE_USAGE, parseEngineFlags } from "./engine_flags.ts";

Deno.test("parseEngineFlags has defaults for everything", () => {
  assert.deepEqual(parseEngineFlags([]), {
    hostname: "127.0.0.1",
    port: 30000,
    tokenizer: null,
    engine: {
      modelName: "embedded",
      maxContextTokens: 131072,
      seed: 0,
      incremental: false,
      flatTopLogprobs: true,
      streamInterval: 1,
      firstTokenDelayMs: 0,
      tokenDelayMs: 0,
      nullReplyTokens: null,
    },
  });
});

Deno.test("parseEngineFlags reads flags and names scripts", () => {
  const flags = parseEngineFlags([
    "--port",
    "0",
    "--script",
    "demo",
    "--incremental",
    "--api-key",
    "k",
    "--null-reply=7",
  ]);
  assert.equal(flags?.port, 0);
  assert.equal(flags?.engine.script, DEMO_SCRIPTS.demo);
  assert.deepEqual([flags?.engine.incremental, flags?.engine.apiKey, flags?.engine.nullReplyTokens], [true, "k", 7]);
  assert.equal(parseEngineFlags(["--help"]), null);
  assert.match(ENGINE_USAGE, /--script/);
});

Deno.test("parseEngineFlags reads what the engine says beside the tokens", () => {
  const { engine } = parseEngineFlags(["--experts", "3x2x8", "--top-p-token-ids", "--draft-tokens", "4"])!;
  assert.deepEqual(engine.experts, { layers: 3, topK: 2, experts: 8 });
  assert.deepEqual([engine.topPTokenIds, engine.draftTokens], [true, 4]);
  for (const text of ["3x2", "0x1x2", "1x3x2", "axbxc"]) {
    assert.throws(() => parseEngineFlags(["--experts", text]), { code: "invalid_request", message: /LxKxN/ });
  }
});

Deno.test("parseEngineFlags refuses what it does not know, with the value and the wanted state", () => {
  for (
    const [args, message] of [
      [["--bogus"], /bogus/],
      [["--port", "x"], /--port x is not a whole number in \[0, 65535\]\./],
      [["--port", "70000"], /65535/],
      [["--script", "none"], /--script none is none of demo, wander\./],
    ] as const
  ) {
    assert.throws(() => parseEngineFlags(args), { code: "invalid_request", message });
  }
});
