/**
 * Blobs in a bucket of S3, or of a store that speaks like it, one prefix an owner (blob_folders.ts). Paths name the bucket
 * (`https://host/bucket/...`). A lifecycle rule on the bucket is the broom of what no sweep reaches.
 */

import { VerbatimError } from "../../core/errors.ts";
import type { BlobOwner, BlobRef, BlobStore } from "../../ports/blob_store.ts";
import type { Clock } from "../../ports/clock.ts";
import { hasExpired, ownerFolder } from "./blob_folders.ts";
import { encodePath, type S3Credentials, signS3 } from "./sign_s3.ts";

export interface S3BlobsOptions extends S3Credentials {
  /** `https://host/bucket`, with a prefix after it or none. */
  readonly url: string;
  readonly clock: Clock;
  readonly fetch?: typeof fetch;
  /** How long one attempt may take. */
  readonly timeoutMs?: number;
}

const TRIES = 3;
const FIRST_PAUSE_MS = 200;
const TIMEOUT_MS = 30_000;
/** Objects removed at once. */
const REMOVE_AT_ONCE = 8;

/** Makes the adapter. Nothing is sent before the first call. */
export function createS3Blobs(options: S3BlobsOptions): BlobStore {
  const bucket = new S3Bucket(options);
  const keyOf = (owner: BlobOwner, name: string): string => `${ownerFolder(owner)}/${name}`;
  return {
    async putBlob(owner, bytes) {
      const name = crypto.randomUUID();
      await bucket.put(keyOf(owner, name), Uint8Array.from(bytes));
      return { name, bytes: bytes.byteLength };
    },

    async getBlob(owner, blob) {
      const bytes = await bucket.get(keyOf(owner, blob.name));
      if (bytes?.byteLength !== blob.bytes) throw notWhole(blob);
      return bytes;
    },

    async removeBlobs(owner) {
      await bucket.removeAll(`${ownerFolder(owner)}/`, () => true);
    },

    async sweepBlobs(nowMs) {
      const owners = new Set<string>();
      // Keys come by name, and names begin with their end: the first that is not over ends the list.
      await bucket.removeAll("", (key) => {
        const [folder] = key.split("/");
        if (!hasExpired(folder!, nowMs)) return false;
        owners.add(folder!);
        return true;
      });
      return owners.size;
    },
  };
}

/** Objects of one bucket under one prefix. Failures are `not_ready`. */
class S3Bucket {
  readonly #options: S3BlobsOptions;
  readonly #root: URL;
  /** Of all keys, as they are listed. */
  readonly #prefix: string;
  readonly #bucket: string;

  constructor(options: S3BlobsOptions) {
    this.#options = options;
    this.#root = new URL(options.url);
    const [bucket = "", ...prefix] = this.#root.pathname.split("/").filter((part) => part !== "");
    this.#bucket = bucket;
    this.#prefix = prefix.map((part) => `${decodeURIComponent(part)}/`).join("");
  }

  async put(key: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
    if (await this.#send("PUT", this.#objectUrl(key), body) === null) throw unusable(new Error("There is no bucket"));
  }

  /** The object, or null where there is none. */
  async get(key: string): Promise<Uint8Array<ArrayBuffer> | null> {
    return await this.#send("GET", this.#objectUrl(key));
  }

  /** Removes objects in the order of their keys, up to the first that is not wanted gone. */
  async removeAll(prefix: string, isWanted: (key: string) => boolean): Promise<void> {
    for (let token: string | null = null;;) {
      const page = await this.#list(prefix, token);
      const stop = page.keys.findIndex((key) => !isWanted(key));
      const keys = stop < 0 ? page.keys : page.keys.slice(0, stop);
      for (let start = 0; start < keys.length; start += REMOVE_AT_ONCE) {
        const some = keys.slice(start, start + REMOVE_AT_ONCE);
        await Promise.all(some.map((key) => this.#send("DELETE", this.#objectUrl(key))));
      }
      token = page.next;
      if (stop >= 0 || token === null) return;
    }
  }

  async #list(prefix: string, token: string | null): Promise<{ keys: string[]; next: string | null }> {
    const url = new URL(`/${this.#bucket}`, this.#root);
    url.searchParams.set("list-type", "2");
    url.searchParams.set("prefix", this.#prefix + prefix);
    if (token !== null) url.searchParams.set("continuation-token", token);
    const answer = await this.#send("GET", url);
    if (answer === null) throw unusable(new Error("There is no bucket"));
    const page = new TextDecoder().decode(answer);
    const keys = [...page.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => unescaped(key!));
    const next = /<NextContinuationToken>([^<]*)</.exec(page)?.[1];
    return {
      keys: keys.filter((key) => key.startsWith(this.#prefix)).map((key) => key.slice(this.#prefix.length)),
      next: next === undefined ? null : unescaped(next),
    };
  }

  #objectUrl(key: string): URL {
    return new URL(`/${encodePath(`${this.#bucket}/${this.#prefix}${key}`)}`, this.#root);
  }

  /** Sends until it is answered; null for 404. What the store refuses for good is not tried again. */
  async #send(method: string, url: URL, body?: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | null> {
    const { clock, timeoutMs = TIMEOUT_MS } = this.#options;
    const send = this.#options.fetch ?? fetch;
    for (let tries = 1;; tries++) {
      let failure: unknown;
      try {
        const headers = await signS3({ method, url, ...(body && { body }) }, this.#options, clock.now());
        const signal = AbortSignal.timeout(timeoutMs);
        const response = await send(url, { method, headers, signal, ...(body && { body }) });
        const bytes = new Uint8Array(await response.arrayBuffer());
        if (response.ok) return bytes;
        if (response.status === 404) return null;
        failure = new Error(`${response.status} ${new TextDecoder().decode(bytes.subarray(0, 500))}`);
        if (response.status < 500 && response.status !== 429 && response.status !== 408) throw unusable(failure);
      } catch (cause) {
        if (cause instanceof VerbatimError) throw cause;
        failure = cause;
      }
      if (tries === TRIES) throw unusable(failure);
      await clock.sleep(FIRST_PAUSE_MS * 2 ** (tries - 1));
    }
  }
}

function unescaped(xml: string): string {
  return xml.replace(/&(lt|gt|quot|apos|amp);/g, (_, name: string) => ENTITIES[name]!);
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function unusable(cause: unknown): VerbatimError {
  return new VerbatimError("not_ready", "The bucket of blobs can't be used", { cause, retryAfterS: 5 });
}

function notWhole({ name }: BlobRef): VerbatimError {
  return new VerbatimError("internal", `The stored bytes ${name} are missing or not whole.`);
}
