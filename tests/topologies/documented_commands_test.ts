/** Blocks of the documentation are read as a shell would read them. */

import assert from "node:assert/strict";
import { commandsOf, startBlocks, TOPOLOGIES } from "./documented_commands.ts";

Deno.test("a block is lines with what is set for them, words in quotes, comments and joined lines", () => {
  const block = `# two of them
python -m router --flag 1 \\
  --urls http://a http://b
A=1 LIST='[{"model": "m"}]' URL=http://x/#y "other" --port 2 # the last
`;
  assert.deepEqual(commandsOf(block), [
    { environment: {}, words: ["python", "-m", "router", "--flag", "1", "--urls", "http://a", "http://b"] },
    {
      environment: { A: "1", LIST: '[{"model": "m"}]', URL: "http://x/#y" },
      words: ["other", "--port", "2"],
    },
  ]);
});

Deno.test("a task of deno.json stands for its command, and an unknown one is said", () => {
  assert.deepEqual(commandsOf("PORT=1 deno task serve"), [
    { environment: { PORT: "1" }, words: ["deno", "run", "--allow-all", "functions/main.ts"] },
  ]);
  assert.throws(() => commandsOf("deno task none"), /no task none/);
});

Deno.test("every topology of the documentation has commands", async () => {
  const blocks = startBlocks(await Deno.readTextFile(TOPOLOGIES));
  assert.deepEqual([...new Set([...blocks.keys()].map((name) => name[0]))], ["A", "B", "C", "D"]);
  for (const [name, block] of blocks) {
    assert.ok(commandsOf(block).some(({ words }) => words.includes("functions/main.ts")), `${name} has a gateway`);
  }
});
