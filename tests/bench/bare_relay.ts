/**
 * The floor: what any proxy that keeps a record must do with a turn. It parses the chat request, posts the same bytes to
 * the engine, commits one small value to a KV file and answers. It tokenizes nothing and checks nothing.
 * Arguments: the engine's URL, the KV file. It prints its URL.
 */

import { Hono } from "hono";
import { NULL_REPLY_MESSAGE } from "./null_reply.ts";
import { printUrl } from "./print_url.ts";

interface EngineReply {
  readonly output_ids: readonly number[];
  readonly meta_info: { readonly finish_reason: { readonly type: string } };
}

/** The relay before an engine. */
export function createBareRelay(engineUrl: string, kv: Deno.Kv): Hono {
  const app = new Hono();
  let turns = 0;
  app.get("/healthz", (context) => context.json({ status: "ok" }));
  app.post("/v1/chat/completions", async (context) => {
    const bytes = new Uint8Array(await context.req.arrayBuffer());
    const request: { model?: string } = JSON.parse(new TextDecoder().decode(bytes));
    const response = await fetch(`${engineUrl}/generate`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: bytes,
    });
    const reply: EngineReply = JSON.parse(await response.text());
    const id = crypto.randomUUID();
    const finish = reply.meta_info.finish_reason.type;
    await kv.set(["turn", turns++], { id, finish, tokens: reply.output_ids.length });
    return context.json(answer(id, request.model ?? "relay", reply.output_ids.length));
  });
  return app;
}

function answer(id: string, model: string, tokens: number): Record<string, unknown> {
  return {
    id: `chatcmpl-${id}`,
    object: "chat.completion",
    created: Math.floor(Date.now() / 1000),
    model,
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: NULL_REPLY_MESSAGE.content,
        tool_calls: [{ id: `call_${id.slice(0, 24)}`, type: "function", function: NULL_REPLY_MESSAGE.function }],
      },
      finish_reason: "tool_calls",
      logprobs: null,
    }],
    usage: { completion_tokens: tokens },
  };
}

if (import.meta.main) {
  const [engineUrl, kvPath] = Deno.args;
  if (engineUrl === undefined || kvPath === undefined) throw new Error("Usage: bare_relay.ts ENGINE_URL KV_FILE");
  const app = createBareRelay(engineUrl, await Deno.openKv(kvPath));
  printUrl(Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, app.fetch));
}
