/** The place for blobs beside the task store, from the environment. Nothing is opened here. */

import { createFolderBlobs } from "./adapters/blobs/folder_blobs.ts";
import { createS3Blobs } from "./adapters/blobs/s3_blobs.ts";
import { VerbatimError } from "./core/errors.ts";
import type { BlobStore } from "./ports/blob_store.ts";
import type { Clock } from "./ports/clock.ts";
import type { Environment } from "./schemas/environment.ts";

/** A folder, a bucket, or null where neither is set. */
export function composeBlobs(environment: Environment, clock: Clock): BlobStore | null {
  const { BLOB_PATH: path, BLOB_S3_URL: url } = environment;
  if (path !== undefined && url !== undefined) {
    throw new VerbatimError("not_ready", "BLOB_PATH and BLOB_S3_URL are both set: blobs have one place");
  }
  if (path !== undefined) return createFolderBlobs(path);
  if (url === undefined) return null;
  const { BLOB_S3_ACCESS_KEY_ID: accessKeyId, BLOB_S3_SECRET_ACCESS_KEY: secretAccessKey } = environment;
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new VerbatimError("not_ready", "BLOB_S3_URL needs BLOB_S3_ACCESS_KEY_ID and BLOB_S3_SECRET_ACCESS_KEY");
  }
  return createS3Blobs({ url, accessKeyId, secretAccessKey, region: environment.BLOB_S3_REGION, clock });
}
