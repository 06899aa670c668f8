/**
 * An agent's side of one task: a long first message, then its own turns and the results of its calls, all sent again
 * with every request. It counts no tokens and sends nothing.
 */

/** The message an endpoint served, as far as an agent looks at it. */
export interface ServedMessage {
  readonly tool_calls?: readonly { readonly id: string }[];
}

/** The tools every request offers. */
export const AGENT_TOOLS: readonly Record<string, unknown>[] = [
  tool("read_file", "Read a file of the repository.", { path: "Path from the root.", start_line: "First line." }),
  tool("write_file", "Replace a file of the repository.", { path: "Path from the root.", content: "The whole text." }),
  tool("run_command", "Run a command in the sandbox and return its output.", { command: "The command line." }),
  tool("search", "Search the repository for a pattern.", { pattern: "A regular expression.", path: "Where to look." }),
];

/** The agent's instructions around a long text. */
export function firstMessages(text: string): Record<string, unknown>[] {
  return [
    { role: "system", content: "You repair software. Call tools until the tests pass, then say what was wrong." },
    { role: "user", content: `The tests fail. This is what we know so far:\n\n${text}` },
  ];
}

const RESULT = "def main(argv: list[str]) -> int:\n    config = load_config(argv[1])\n    return run(config)\n";
/** The ends of a body, after its messages. */
const CLOSE = {
  whole: new TextEncoder().encode("]}"),
  streamed: new TextEncoder().encode('],"stream":true}'),
};
const SPARE_BYTES = 64 * 1024;

/** One conversation; its request grows in place. */
export class AgentConversation {
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;
  #requests = 0;

  private constructor(start: Uint8Array) {
    this.#bytes = new Uint8Array(start.length + SPARE_BYTES);
    this.#append(start);
  }

  /** A conversation that begins with these messages. */
  static of(messages: readonly Record<string, unknown>[]): AgentConversation {
    const head = JSON.stringify({ model: "bench", max_tokens: 64, tools: AGENT_TOOLS }).slice(0, -1);
    const text = `${head},"messages":[${messages.map((message) => JSON.stringify(message)).join(",")}`;
    return new AgentConversation(new TextEncoder().encode(text));
  }

  /** The same conversation as it stands, for another endpoint. */
  copy(): AgentConversation {
    return new AgentConversation(this.#bytes.subarray(0, this.#length));
  }

  /** The result of a call. */
  static result(callId: string): Record<string, unknown> {
    return { role: "tool", tool_call_id: callId, content: RESULT };
  }

  /** Requests made so far. */
  get requests(): number {
    return this.#requests;
  }

  /** The body of the next request. Valid until `take`. A streamed one says so in its last bytes. */
  request(answer: "whole" | "streamed" = "whole"): Uint8Array<ArrayBuffer> {
    const close = CLOSE[answer];
    this.#requests++;
    this.#reserve(close.length);
    this.#bytes.set(close, this.#length);
    return this.#bytes.subarray(0, this.#length + close.length);
  }

  /** Appends what was served and the results of its calls. */
  take(served: ServedMessage): void {
    const results = (served.tool_calls ?? []).map((call) => AgentConversation.result(call.id));
    const next = results.length > 0 ? results : [{ role: "user", content: RESULT }];
    for (const message of [served, ...next]) this.#append(new TextEncoder().encode(`,${JSON.stringify(message)}`));
  }

  #append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = new Uint8Array(this.#length + more + SPARE_BYTES);
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

function tool(name: string, description: string, fields: Readonly<Record<string, string>>): Record<string, unknown> {
  const properties = Object.fromEntries(
    Object.entries(fields).map(([field, text]) => [field, { type: "string", description: text }]),
  );
  const parameters = { type: "object", properties, required: Object.keys(fields) };
  return { type: "function", function: { name, description, parameters } };
}
