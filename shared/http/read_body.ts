/** Reads and checks request bodies. It knows sizes and JSON, not what a body means. */

import type { Context } from "hono";
import type { z } from "zod";
import { VerbatimError } from "../core/errors.ts";
import { type GrownJson, type KnownJson, parseGrowing } from "../core/growing_json.ts";
import { assertShallow } from "./assert_shallow.ts";
import { parseWith } from "./parse_with.ts";

/**
 * The body's JSON, whatever its content type says. Errors: `body_too_large` past `maxBytes` (read no further),
 * `invalid_request` where it is not UTF-8 JSON or nested too deeply. An empty body is `{}` where `emptyIsObject` says so.
 */
export async function readJson(
  context: Context,
  options: { maxBytes: number; emptyIsObject?: boolean },
): Promise<unknown> {
  const bytes = await readWhole(context.req.raw, options.maxBytes);
  if (bytes.length === 0 && options.emptyIsObject === true) return {};
  const value = parsed(() => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  assertShallow(value);
  return value;
}

/** The same of a body that may go on from a known one, by a list in one of `fields`: only what is new is parsed and checked. */
export async function readGrowingJson(
  context: Context,
  options: { maxBytes: number; fields: readonly string[]; known: (bytes: Uint8Array) => KnownJson | null },
): Promise<GrownJson> {
  const bytes = await readWhole(context.req.raw, options.maxBytes);
  const grown = parsed(() => parseGrowing(bytes, options.fields, options.known(bytes)));
  assertShallow(
    grown.knownItems === 0
      ? grown.value
      : Object.assign({}, grown.value, { [grown.known!.field]: grown.known!.items.slice(grown.knownItems) }),
  );
  return grown;
}

/** The body, checked by `schema`. An unknown field is `unknown_field`, anything else `invalid_request`; both name the field. */
export async function readBody<T extends z.ZodType>(
  context: Context,
  schema: T,
  options: { maxBytes: number; emptyIsObject?: boolean },
): Promise<z.output<T>> {
  return parseWith(schema, await readJson(context, options), "body");
}

async function readWhole(request: Request, maxBytes: number): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (Number(declared ?? "0") > maxBytes) throw tooLarge(maxBytes);
  const bytes = await readBytes(request, { maxBytes, isDeclared: declared !== null });
  if (bytes.byteLength > maxBytes) throw tooLarge(maxBytes);
  return bytes;
}

/** What `parse` makes of a body; its failures are the caller's mistakes. */
function parsed<Value>(parse: () => Value): Value {
  try {
    return parse();
  } catch (thrown) {
    if (thrown instanceof SyntaxError) {
      throw new VerbatimError("invalid_request", `The body is not JSON: ${reasonOf(thrown)}`, {
        details: { field: null, reason: "not JSON" },
      });
    }
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new VerbatimError("invalid_request", "The body is not UTF-8", {
      details: { field: null, reason: "not UTF-8" },
      cause: thrown,
    });
  }
}

/**
 * A body of a declared length is read by the host in one go, and no stream is made of it: that costs half. The host lets no
 * more than the declared length in.
 */
async function readBytes(
  request: Request,
  options: { maxBytes: number; isDeclared: boolean },
): Promise<Uint8Array> {
  try {
    if (options.isDeclared) return await request.bytes();
    return request.body === null ? new Uint8Array() : await readUpTo(request.body, options.maxBytes);
  } catch (cause) {
    if (cause instanceof VerbatimError) throw cause;
    throw new VerbatimError("client_gone", "The client hung up while sending its request", { cause });
  }
}

async function readUpTo(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      size += part.value.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      chunks.push(part.value);
    }
  } finally {
    reader.releaseLock();
  }
  const all = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    all.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return all;
}

function tooLarge(maxBytes: number): VerbatimError {
  return new VerbatimError("body_too_large", `The body exceeds ${maxBytes} bytes`, {
    details: { max_bytes: maxBytes },
  });
}

/** JSON.parse quotes the input in its message; the quote, which may hold anything, goes neither to caller nor log. */
function reasonOf({ message }: SyntaxError): string {
  if (!message.endsWith("is not valid JSON")) return message;
  return message.startsWith("Unexpected token") ? "Unexpected token" : "Unexpected text";
}
