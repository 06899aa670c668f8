/**
 * The floor: what any proxy that keeps a record must do with a turn. It parses the chat request, posts the same bytes to
 * the engine, commits one small value to a KV file and answers; a stream it passes on as it comes, and commits before
 * its end. It tokenizes nothing and checks nothing. Arguments: the engine's URL, the KV file. It prints its URL.
 */

import { Hono } from "hono";
import { nullReplyMessage } from "./null_reply.ts";
import { printUrl } from "./print_url.ts";

interface ChatRequest {
  readonly model?: string;
  readonly stream?: boolean;
}

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
    const request: ChatRequest = JSON.parse(new TextDecoder().decode(bytes));
    const response = await fetch(`${engineUrl}/generate`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: bytes,
    });
    const id = crypto.randomUUID();
    if (request.stream === true && response.body !== null) {
      const committing = new TransformStream<Uint8Array, Uint8Array>({
        flush: async () => void await kv.set(["turn", turns++], { id }),
      });
      return context.body(response.body.pipeThrough(committing), 200, { "content-type": "text/event-stream" });
    }
    const reply: EngineReply = JSON.parse(await response.text());
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
    choices: [{ index: 0, message: nullReplyMessage(id), finish_reason: "tool_calls", logprobs: null }],
    usage: { completion_tokens: tokens },
  };
}

if (import.meta.main) {
  const [engineUrl, kvPath] = Deno.args;
  if (engineUrl === undefined || kvPath === undefined) throw new Error("Usage: bare_relay.ts ENGINE_URL KV_FILE");
  const app = createBareRelay(engineUrl, await Deno.openKv(kvPath));
  printUrl(Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, app.fetch));
}
