/** The engine as a process: its first line is where it answers, and a signal ends it. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));

function command(args: readonly string[]): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-all", MAIN, ...args],
    stdout: "piped",
    stderr: "piped",
  });
}

Deno.test("main.ts prints its URL, answers there, and ends by a signal", async () => {
  const process = command(["--port", "0", "--script", "demo", "--context", "4096"]).spawn();
  try {
    const reader = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let line = "";
    while (!line.includes("\n")) {
      const { done, value } = await reader.read();
      assert.equal(done, false, "the process ended before it listened");
      line += value;
    }
    reader.releaseLock();
    const url = line.trim();
    const response = await fetch(`${url}/generate`, {
      method: "POST",
      body: JSON.stringify({ text: "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n" }),
    });
    assert.equal((await response.json()).text, "Hello! What shall we do?");
  } finally {
    process.kill("SIGTERM");
    await process.stderr.cancel();
    assert.equal((await process.status).code, 0);
  }
});

Deno.test("main.ts refuses a flag it does not know with status 2 and a sentence", async () => {
  const { code, stderr } = await command(["--port", "x"]).output();
  assert.equal(code, 2);
  assert.equal(new TextDecoder().decode(stderr).trim(), "--port x is not a whole number in [0, 65535].");
});
