import assert from "node:assert/strict";
import { encodePath, signS3, type UnsignedRequest } from "./sign_s3.ts";

/** The worked examples of the service's own documentation: its key, its moment, its signatures. */
const CREDENTIALS = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  region: "us-east-1",
};
const AT_MS = Date.UTC(2013, 4, 24);
const HOST = "https://examplebucket.s3.amazonaws.com";

const EXAMPLES: readonly (UnsignedRequest & { signature: string })[] = [
  {
    method: "GET",
    url: new URL(`${HOST}/test.txt`),
    headers: { range: "bytes=0-9" },
    signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  },
  {
    method: "PUT",
    url: new URL(`${HOST}/${encodePath("test$file.text")}`),
    headers: { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
    body: new TextEncoder().encode("Welcome to Amazon S3."),
    signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  },
  {
    method: "GET",
    url: new URL(`${HOST}/?lifecycle`),
    signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  },
  {
    method: "GET",
    url: new URL(`${HOST}/?prefix=J&max-keys=2`),
    signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  },
];

for (const { signature, ...request } of EXAMPLES) {
  Deno.test(`signS3 signs ${request.method} ${request.url.pathname}${request.url.search} as documented`, async () => {
    const headers = await signS3(request, CREDENTIALS, AT_MS);
    assert.equal(/Signature=(\w+)$/.exec(headers.authorization!)?.[1], signature);
  });
}

Deno.test("signS3 sends what was given beside what it adds, and not the host, which the client sends itself", async () => {
  const headers = await signS3(EXAMPLES[0]!, CREDENTIALS, AT_MS);
  assert.deepEqual(Object.keys(headers).sort(), ["authorization", "range", "x-amz-content-sha256", "x-amz-date"]);
  assert.equal(headers["x-amz-date"], "20130524T000000Z");
});

Deno.test("encodePath escapes all that S3 counts as escaped, and keeps the slashes", () => {
  assert.equal(encodePath("a b/ü!'()*+/~-_.x"), "a%20b/%C3%BC%21%27%28%29%2A%2B/~-_.x");
});
