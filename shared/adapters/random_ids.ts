/** Names from the host's cryptographic randomness. */

import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Ids of this process; `ulid` never goes back, even where the clock does. */
export function createRandomIds(clock: Clock): Ids {
  let lastMs = 0;
  let sequence = 0;
  return {
    uuid: () => crypto.randomUUID().replaceAll("-", ""),
    hex: (digits) => randomHex(digits),
    ulid() {
      const nowMs = Math.max(clock.now(), lastMs);
      sequence = nowMs === lastMs ? sequence + 1 : 0;
      lastMs = nowMs;
      // 48 bits of time, 20 bits of order within the millisecond, 60 random bits.
      return base32(nowMs, 10) + base32(sequence, 4) + randomBase32(12);
    },
  };
}

function randomHex(digits: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(Math.ceil(digits / 2)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("").slice(0, digits);
}

function base32(value: number, digits: number): string {
  let text = "";
  for (let rest = value, i = 0; i < digits; i++) {
    text = CROCKFORD[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function randomBase32(digits: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(digits)), (byte) => CROCKFORD[byte % 32]).join("");
}
