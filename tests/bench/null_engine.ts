/**
 * An engine that costs as little as a server can: it reads a request's bytes, looks at none of them, and always replies
 * the same. It prints its URL.
 */

import { NULL_REPLY_IDS, NULL_REPLY_TEXT } from "./null_reply.ts";
import { printUrl } from "./print_url.ts";

const REPLY = new TextEncoder().encode(JSON.stringify({
  text: NULL_REPLY_TEXT,
  output_ids: NULL_REPLY_IDS,
  meta_info: {
    finish_reason: { type: "stop", matched: NULL_REPLY_IDS.at(-1) },
    output_token_logprobs: NULL_REPLY_IDS.map((id) => [-0.5, id, null]),
    completion_tokens: NULL_REPLY_IDS.length,
    weight_version: "null",
  },
}));
const MODEL = JSON.stringify({ model_path: "null", weight_version: "null" });
const HEADERS = { "content-type": "application/json" };

if (import.meta.main) {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (!request.url.endsWith("/generate")) return new Response(MODEL, { headers: HEADERS });
    await request.arrayBuffer();
    return new Response(REPLY, { headers: HEADERS });
  });
  printUrl(server);
}
