/**
 * An engine that costs as little as a server can: it reads a request's bytes, looks at the last of them alone, which say
 * whether the reply is to be streamed, and always replies the same. A stream's first frame leaves at once, each further
 * one after a pause. It prints its URL.
 */

import { NULL_REPLY_CUTS, NULL_REPLY_IDS, NULL_REPLY_TEXT } from "./null_reply.ts";
import { printUrl } from "./print_url.ts";

/** The pause before each frame but the first. */
const PAUSE_MS = 20;

const encoder = new TextEncoder();
const REPLY = encoder.encode(JSON.stringify(replyUpTo(NULL_REPLY_CUTS.at(-1)!)));
/** Text and ids are cumulative, as SGLang's are. */
const FRAMES = NULL_REPLY_CUTS.map((cut) => encoder.encode(`data: ${JSON.stringify(replyUpTo(cut))}\n\n`));
const DONE = encoder.encode("data: [DONE]\n\n");
const STREAM_ASKED = '"stream":true}';
const MODEL = JSON.stringify({ model_path: "null", weight_version: "null" });
const HEADERS = { "content-type": "application/json" };
const STREAM_HEADERS = { "content-type": "text/event-stream" };

/** The reply as far as it is sampled at a cut. */
function replyUpTo({ tokens, characters }: { tokens: number; characters: number }): Record<string, unknown> {
  const ids = NULL_REPLY_IDS.slice(0, tokens);
  return {
    text: NULL_REPLY_TEXT.slice(0, characters),
    output_ids: ids,
    meta_info: {
      finish_reason: tokens < NULL_REPLY_IDS.length ? null : { type: "stop", matched: ids.at(-1) },
      output_token_logprobs: ids.map((id) => [-0.5, id, null]),
      completion_tokens: tokens,
      weight_version: "null",
    },
  };
}

function asksForStream(body: Uint8Array): boolean {
  return new TextDecoder().decode(body.subarray(-STREAM_ASKED.length)) === STREAM_ASKED;
}

function stream(): ReadableStream<Uint8Array> {
  let sent = 0;
  let timer: ReturnType<typeof setTimeout>;
  return new ReadableStream({
    start(controller) {
      function send(): void {
        controller.enqueue(FRAMES[sent++]!);
        if (sent < FRAMES.length) {
          timer = setTimeout(send, PAUSE_MS);
          return;
        }
        controller.enqueue(DONE);
        controller.close();
      }
      send();
    },
    cancel() {
      clearTimeout(timer);
    },
  });
}

if (import.meta.main) {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (!request.url.endsWith("/generate")) return new Response(MODEL, { headers: HEADERS });
    const body = new Uint8Array(await request.arrayBuffer());
    if (asksForStream(body)) return new Response(stream(), { headers: STREAM_HEADERS });
    return new Response(REPLY, { headers: HEADERS });
  });
  printUrl(server);
}
