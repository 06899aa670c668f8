/** Names from the host's cryptographic randomness. */

import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Ulids told apart by their order within one millisecond; after them the next millisecond is used up in advance. */
const MOST_OF_ONE_MS = 2 ** 20;

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
      if (sequence === MOST_OF_ONE_MS) {
        sequence = 0;
        lastMs++;
      }
      // 48 bits of time, 20 bits of order within the millisecond, 60 random bits.
      return base32(lastMs, 10) + base32(sequence, 4) + randomBase32(12);
    },
  };
}

function randomHex(digits: number): string {
  // The host makes a UUID in one cheap call; 27 of its digits are random through and through.
  let hex = "";
  while (hex.length < digits) {
    const uuid = crypto.randomUUID();
    hex += uuid.slice(0, 8) + uuid.slice(9, 13) + uuid.slice(15, 18) + uuid.slice(24);
  }
  return hex.slice(0, digits);
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
