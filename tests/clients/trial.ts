/** One client's job on a gateway of its own, and what must hold afterwards: one series, a valid capture, every token where it was sampled. */

import assert from "node:assert/strict";
import { LAST_WORDS, REPLIES, REQUEST } from "./job.ts";

/** What a client is given. */
export interface Endpoint {
  /** Ends in `/v1`. */
  readonly openaiBaseUrl: string;
  /** Does not. */
  readonly anthropicBaseUrl: string;
  readonly apiKey: string;
  readonly model: string;
}

/** What is expected of a job. */
export interface Expected {
  /** Grades of the echoes, one a turn after the first. */
  readonly echoes: readonly string[];
}

// deno-lint-ignore no-explicit-any -- tests look into JSON whose shape they assert
type Json = any;

const CLIENTS = new URL("./", import.meta.url);
const TOLERANCE = 1e-6;

/** One gateway for all tests of a file: they share no task. */
let shared: Gateway | null = null;
Deno.test.beforeAll(async () => {
  shared = await Gateway.start();
});
Deno.test.afterAll(async () => {
  await shared?.close();
});

/** Runs a job, which resolves to the client's last words, and checks what was recorded. */
export async function trial(job: (endpoint: Endpoint) => Promise<string>, expected: Expected): Promise<void> {
  const gateway = shared;
  assert.ok(gateway !== null, "The gateway did not start");
  const task = await gateway.call("POST", "/tasks", {});
  const words = await job({
    openaiBaseUrl: task.base_url,
    anthropicBaseUrl: task.anthropic_base_url,
    apiKey: task.api_key,
    model: "default",
  });
  assert.equal(words.trim(), LAST_WORDS);
  const { decisions } = await gateway.call("GET", `/tasks/${task.task_id}/explain`);
  assert.deepEqual(decisions.map(({ relation, echo, verdict }: Json) => [relation, echo, verdict]), [
    ["root", null, "ok"],
    ...expected.echoes.map((echo) => ["append", echo, "ok"]),
  ]);
  assert.equal(decisions.length, REPLIES.length);
  const finished = await gateway.call("POST", `/tasks/${task.task_id}/finish`, { reward: 1 });
  assert.deepEqual([finished.reason, finished.other_rows], [null, 0]);
  const { capture } = await gateway.call("GET", `/tasks/${task.task_id}`);
  assert.equal(capture.valid, true);
  await gateway.checkPromise(finished.result);
}

/** A gateway process. */
class Gateway {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #urls: { readonly gateway: string; readonly engine: string };

  private constructor(
    child: Deno.ChildProcess,
    input: WritableStreamDefaultWriter<Uint8Array>,
    urls: { readonly gateway: string; readonly engine: string },
  ) {
    this.#child = child;
    this.#input = input;
    this.#urls = urls;
  }

  static async start(): Promise<Gateway> {
    const root = new URL("../../", CLIENTS);
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "--frozen", "--allow-all", "--config", "deno.json", "tests/fixtures/scripted_gateway.ts"],
      cwd: root,
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const input = child.stdin.getWriter();
    const rules = [{ match: REQUEST, completions: REPLIES }];
    await input.write(new TextEncoder().encode(`${JSON.stringify(rules)}\n`));
    let text = "";
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (text.includes("\n")) break;
    }
    return new Gateway(child, input, JSON.parse(text));
  }

  /** An own endpoint of the gateway. */
  async call(method: string, path: string, body?: unknown): Promise<Json> {
    return await this.#fetch(this.#urls.gateway + path, method, body);
  }

  /** The engine gives every exported sampled token its exported logprob, after exactly the tokens exported before it. */
  async checkPromise(region: Json): Promise<void> {
    const prompt: number[] = region.prompt_token_ids;
    const completion: number[] = region.completion_token_ids;
    const scored = await this.#fetch(`${this.#urls.engine}/generate`, "POST", {
      input_ids: [...prompt, ...completion],
      sampling_params: { max_new_tokens: 1, temperature: 0 },
      return_logprob: true,
      logprob_start_len: prompt.length - 1,
    });
    const [boundary, ...entries] = scored.meta_info.input_token_logprobs;
    assert.equal(boundary[0], null);
    assert.equal(entries.length, completion.length);
    let sampled = 0;
    entries.forEach(([logprob, id]: [number, number], k: number) => {
      assert.equal(id, completion[k]);
      if (region.loss_mask[k] !== 1) return;
      sampled++;
      assert.ok(Math.abs(logprob - region.logprobs[k]) <= TOLERANCE, `token ${k}: ${logprob}, ${region.logprobs[k]}`);
    });
    assert.ok(sampled > 100, `${sampled} sampled tokens`);
  }

  async #fetch(url: string, method: string, body: unknown): Promise<Json> {
    const response = await fetch(url, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const json = await response.json();
    assert.ok(response.ok, `${method} ${url}: ${response.status} ${JSON.stringify(json)}`);
    return json;
  }

  async close(): Promise<void> {
    await this.#input.close();
    await this.#child.status;
  }
}
