/** Signatures of requests to S3 and what speaks like it (AWS Signature Version 4). It sends nothing. */

/** Who signs. */
export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

/** A request before it is signed. */
export interface UnsignedRequest {
  readonly method: string;
  /** Its path must be in the form that {@linkcode encodePath} gives. */
  readonly url: URL;
  /** Signed too; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
}

const text = new TextEncoder();

/** The headers to send: those given, and the four that make the signature. */
export async function signS3(
  request: UnsignedRequest,
  credentials: S3Credentials,
  nowMs: number,
): Promise<Record<string, string>> {
  const { method, url } = request;
  const time = new Date(nowMs).toISOString().replace(/[-:]|\.\d+/g, "");
  const scope = `${time.slice(0, 8)}/${credentials.region}/s3/aws4_request`;
  const bodyHash = hex(await crypto.subtle.digest("SHA-256", request.body ?? new Uint8Array()));
  const headers: Record<string, string> = {
    ...request.headers,
    "x-amz-content-sha256": bodyHash,
    "x-amz-date": time,
  };
  const signed = Object.entries({ ...headers, host: url.host }).sort(([left], [right]) => left < right ? -1 : 1);
  const names = signed.map(([name]) => name).join(";");
  const canonical = [
    method,
    url.pathname,
    canonicalQuery(url.searchParams),
    ...signed.map(([name, value]) => `${name}:${value.trim()}`),
    "",
    names,
    bodyHash,
  ].join("\n");
  const summary = ["AWS4-HMAC-SHA256", time, scope, hex(await crypto.subtle.digest("SHA-256", text.encode(canonical)))];
  let key: Uint8Array<ArrayBuffer> = text.encode(`AWS4${credentials.secretAccessKey}`);
  for (const part of scope.split("/")) key = await hmac(key, part);
  const signature = hex(await hmac(key, summary.join("\n")));
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope},SignedHeaders=${names},` +
    `Signature=${signature}`;
  return headers;
}

/** A path with every character escaped that S3 wants escaped, slashes kept. */
export function encodePath(path: string): string {
  return path.split("/").map(escaped).join("/");
}

function canonicalQuery(query: URLSearchParams): string {
  const pairs = [...query].map(([name, value]) => [escaped(name), escaped(value)] as const);
  pairs.sort(([a, x], [b, y]) => a === b ? (x < y ? -1 : 1) : a < b ? -1 : 1);
  return pairs.map(([name, value]) => `${name}=${value}`).join("&");
}

function escaped(part: string): string {
  const byCode = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(part).replace(/[!'()*]/g, byCode);
}

async function hmac(key: Uint8Array<ArrayBuffer>, message: string): Promise<Uint8Array<ArrayBuffer>> {
  const made = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", made, text.encode(message)));
}

function hex(bytes: ArrayBuffer | Uint8Array): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
