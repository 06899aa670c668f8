import assert from "node:assert/strict";
import { qwen3Tokenizer } from "../tests/fixtures/qwen3_tokenizer.ts";
import { createEmbeddedEngine } from "../shared/engine/embedded_engine.ts";
import { serveEmbeddedEngine } from "../shared/engine/serve_embedded_engine.ts";
import { doctorEngine } from "./compose_doctor.ts";
import { diagnosisText } from "./diagnosis_text.ts";
import { DOCTOR_USAGE, doctorOptions } from "./doctor_options.ts";
import type { DoctorEngine } from "./engine_findings.ts";
import { examine } from "./examine.ts";

const tokenizer = await qwen3Tokenizer();

async function broken(name: string): Promise<string> {
  return await Deno.readTextFile(new URL(`../tests/fixtures/templates/broken/${name}.jinja`, import.meta.url));
}

/** Runs with an embedded engine on a socket. */
async function withEngine(work: (engine: DoctorEngine) => Promise<void>): Promise<void> {
  const served = serveEmbeddedEngine(
    createEmbeddedEngine({ tokenizer, modelName: "embedded", maxContextTokens: 8192 }),
  );
  try {
    await work(doctorEngine({ engine: served.url, apiKey: null }, tokenizer.vocabSize));
  } finally {
    await served.close();
  }
}

Deno.test("examine finds a model and an engine in good health", async () => {
  await withEngine(async (engine) => {
    const diagnosis = await examine({ tokenizer, renderer: {}, engine });
    assert.deepEqual(diagnosis.findings.filter(({ verdict }) => verdict === "failed"), []);
    assert.ok(diagnosis.healthy);
    const text = diagnosisText(diagnosis);
    assert.match(text, /^family +qwen3$/m);
    assert.match(text, /^tool-call parser +qwen25$/m);
    assert.match(text, /^passed +the engine's ids of a prompt +\d+ tokens$/m);
    assert.match(text, /^passed +sampled and force-decoded logprobs +24 tokens, largest difference 0/m);
    assert.match(text, /^not checked +the engine's own rendering of messages/m);
    assert.match(text, /^\d+ passed, 0 failed, 1 not checked$/m);
  });
});

for (
  const [name, reason] of [
    ["drops_results", /a tool result can be appended +The template leaves out the content of a tool message/],
    ["leaves_calls_open", /a tool result can be appended +The template closes a plain reply, but not this one/],
    [
      "numbers_messages",
      /a user message can be appended +The increment is not what .*: token \d+, after .* is " 3"|"3" .* instead of /,
    ],
    ["rewrites_replies", /the chat template can be used +The chat template does not render .* content as it is/],
    [
      "merges_at_the_seam",
      /a user message can be appended +A series and its increment are other tokens .*: token \d+, after .* instead of /,
    ],
    ["half_a_tag", /the chat template can be used +The chat template can't be parsed/],
  ] as const
) {
  Deno.test(`examine tells what is wrong with the template ${name}`, async () => {
    const diagnosis = await examine({ tokenizer, renderer: { chatTemplate: await broken(name) }, engine: null });
    assert.equal(diagnosis.healthy, false);
    const text = diagnosisText(diagnosis);
    assert.match(text.split("\n").filter((line) => line.startsWith("FAILED")).join("\n"), reason);
    assert.doesNotMatch(text, / 0 failed/);
  });
}

Deno.test("examine fails where the engine has other tokens, and shows the first", async () => {
  await withEngine(async (engine) => {
    const other: DoctorEngine = {
      ...engine,
      async tokenize(body) {
        const ids = await engine.tokenize(body);
        return ids?.map((id, index) => index === 2 ? id + 1 : id) ?? null;
      },
    };
    const diagnosis = await examine({ tokenizer, renderer: {}, engine: other });
    assert.equal(diagnosis.healthy, false);
    assert.match(
      diagnosisText(diagnosis),
      /^FAILED +the engine's ids of a prompt +the engine's token 2, after "<\|im_start\|>" \(151644\) "system" \(\d+\), is .* instead of "\\n" \(198\)/m,
    );
  });
});

Deno.test("examine fails where a named parser does not read the template's calls", async () => {
  const diagnosis = await examine({ tokenizer, renderer: { toolCallParser: "glm45" }, engine: null });
  assert.equal(diagnosis.healthy, false);
  assert.match(diagnosisText(diagnosis), /^FAILED +the tool-call parser reads the template's call +glm45 finds \[\]/m);
});

Deno.test("examine fails where the engine does not answer", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const engine = doctorEngine({ engine: `http://127.0.0.1:${port}`, apiKey: null }, tokenizer.vocabSize);
  const diagnosis = await examine({ tokenizer, renderer: {}, engine });
  assert.equal(diagnosis.healthy, false);
  assert.match(diagnosisText(diagnosis), /^FAILED +the engine answers/m);
});

Deno.test("doctorOptions reads flags over variables", () => {
  const given = { TOKENIZER: "/models/a", SGLANG_ROUTER_URL: "http://127.0.0.1:1/", TOOL_CALL_PARSER: "glm45" };
  assert.deepEqual(doctorOptions(["--tokenizer", "/models/b", "--tool-call-parser", "none"], given), {
    tokenizer: "/models/b",
    chatTemplate: null,
    engine: "http://127.0.0.1:1",
    apiKey: null,
    toolCallParser: null,
    reasoningParser: "auto",
  });
  assert.equal(doctorOptions(["--help"], given), null);
  assert.throws(() => doctorOptions(["--unheard"], {}), { code: "invalid_request" });
  assert.throws(() => doctorOptions(["--engine", "nowhere"], {}), { code: "invalid_request" });
});

Deno.test("the command prints its usage, and exits with 1 where there is nothing to examine", async () => {
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--frozen", "-A", new URL("main.ts", import.meta.url).pathname, ...args],
      clearEnv: true,
      env: { HOME: Deno.env.get("HOME") ?? "", DENO_DIR: Deno.env.get("DENO_DIR") ?? "", NO_COLOR: "1" },
    }).output();
    return { code, out: new TextDecoder().decode(stdout), error: new TextDecoder().decode(stderr) };
  };
  assert.deepEqual(await run("--help"), { code: 0, out: DOCTOR_USAGE, error: "" });
  const nothing = await run();
  assert.equal(nothing.code, 1);
  assert.match(nothing.error, /There is nothing to examine/);
});
