/** The only form in which keys are stored, looked up or compared. */

import { createHash, timingSafeEqual } from "node:crypto";

/** SHA-256 of a key, 64 hex digits. */
export function hashKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

/** Whether two keys are equal, in constant time: their hashes have one length. */
export function equalKeys(a: string, b: string): boolean {
  return timingSafeEqual(createHash("sha256").update(a).digest(), createHash("sha256").update(b).digest());
}
