/**
 * The worker that encodes long texts off the event loop. Its first message is the encoder's data, every further one a text;
 * it answers each in order, and knows nothing of who asks.
 */

import type { EncodeOptions } from "../../ports/tokenizer.ts";
import { createEncoder, type Encoder, type EncoderSource } from "./hf_encoder.ts";

/** What the worker is sent. */
export type EncodeMessage =
  | { readonly type: "start"; readonly source: EncoderSource }
  | { readonly type: "encode"; readonly text: string; readonly options: EncodeOptions };

/** What it answers to an `encode`. */
export type EncodeReply =
  | { readonly type: "ids"; readonly ids: Uint32Array<ArrayBuffer> }
  | { readonly type: "failed"; readonly message: string };

interface WorkerScope {
  onmessage: ((event: { data: EncodeMessage }) => void) | null;
  postMessage(reply: EncodeReply, transfer: Transferable[]): void;
}

declare const self: WorkerScope;

let encoder: Encoder | null = null;

self.onmessage = ({ data: message }) => {
  if (message.type === "start") {
    encoder = createEncoder(message.source);
    return;
  }
  try {
    if (encoder === null) throw new Error("a text came before the encoder's data");
    const ids = encoder.encode(message.text, message.options);
    self.postMessage({ type: "ids", ids }, [ids.buffer]);
  } catch (error) {
    self.postMessage({ type: "failed", message: error instanceof Error ? error.message : String(error) }, []);
  }
};
