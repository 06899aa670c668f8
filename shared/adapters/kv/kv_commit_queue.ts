/**
 * All writes of a KV store go through here: they gather while commits are under way and then go together, as many as
 * one atomic write takes. It knows neither tasks nor turns.
 *
 * Writes without checks can't fail one another. Two writes with checks may share an atomic write because what they
 * check and write is disjoint: each names the things it owns (`claims`), and no two writes with a common claim are ever
 * in one atomic write, or under way at once; they keep their order. So the only harm of one failed check is that the whole
 * atomic write did not happen, and then each of its writes is tried on its own.
 */

import { VerbatimError } from "../../core/errors.ts";
import type { Logger } from "../../ports/logger.ts";
import { busyDelayMs, busyError, type BusyRetry, isBusyError } from "./kv_busy.ts";
import { keyBytesAtMost } from "./kv_keys.ts";
import type { KvLimits } from "./kv_limits.ts";

export interface KvSet {
  readonly key: Deno.KvKey;
  readonly value: Uint8Array;
  /** Milliseconds from now after which the database may remove it; undefined: never. */
  readonly expireInMs: number | undefined;
}

/** One write: all of it happens, or nothing. */
export interface KvWrite {
  readonly checks: readonly Deno.AtomicCheck[];
  readonly sets: readonly KvSet[];
  readonly deletes: readonly Deno.KvKey[];
  /** Names of what it owns. A write with checks has at least one, and every key it checks or writes belongs to its claims alone. */
  readonly claims: readonly string[];
}

interface WaitingWrite {
  readonly write: KvWrite;
  readonly size: WriteSize;
  readonly acceptedAtMs: number;
  readonly resolve: (versionstamp: string | null) => void;
  readonly reject: (error: unknown) => void;
}

interface WriteSize {
  readonly checks: number;
  readonly mutations: number;
  readonly bytes: number;
  readonly keyBytes: number;
}

/** How many waiting writes are looked at when a group is put together. */
const WINDOW = 256;

export class KvCommitQueue {
  readonly #kv: Deno.Kv;
  readonly #limits: KvLimits;
  readonly #retry: BusyRetry;
  readonly #logger: Logger | undefined;
  readonly #waiting: WaitingWrite[] = [];
  readonly #claimed = new Set<string>();
  #waitingBytes = 0;
  #commits = 0;
  #pumping = false;
  /** Whether a write waits that is not to wait for company any longer. */
  #isDue = false;
  #lingers = false;

  constructor(kv: Deno.Kv, options: { limits: KvLimits; retry: BusyRetry; logger?: Logger | undefined }) {
    this.#kv = kv;
    this.#limits = options.limits;
    this.#retry = options.retry;
    this.#logger = options.logger;
  }

  /**
   * Writes. Resolves, once it is durable, with the versionstamp of everything written, or with null where a check failed.
   * `not_ready` after the deadline while the database is locked: then nothing of it happened. A write that `mayLinger`
   * waits a while for others to go with: a commit of its own would cost more than it is worth.
   */
  async commit(write: KvWrite, { mayLinger = false }: { mayLinger?: boolean } = {}): Promise<string | null> {
    const size = sizeOf(write);
    if (!this.#fits(size)) {
      throw new VerbatimError("internal", "A write is larger than one atomic write can be.", { details: { ...size } });
    }
    if (this.#waitingBytes + size.bytes > this.#limits.maxWaitingBytes) {
      const message = `The store has ${this.#waitingBytes} bytes of writes waiting; try again later.`;
      throw new VerbatimError("not_ready", message, { retryAfterS: 1 });
    }
    const { promise, resolve, reject } = Promise.withResolvers<string | null>();
    this.#waiting.push({ write, size, resolve, reject, acceptedAtMs: this.#retry.clock.now() });
    this.#waitingBytes += size.bytes;
    if (mayLinger) {
      this.#linger();
    } else {
      this.#isDue = true;
      this.#schedulePump();
    }
    return await promise;
  }

  #linger(): void {
    if (this.#lingers) return;
    this.#lingers = true;
    void this.#retry.clock.sleep(this.#limits.lingerMs).then(() => {
      this.#lingers = false;
      this.#isDue = this.#waiting.length > 0;
      this.#schedulePump();
    });
  }

  /** Writes of one tick go together, even where no commit is under way. */
  #schedulePump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#isDue && this.#commits < this.#limits.maxCommits) {
      const group = this.#takeGroup();
      this.#isDue = this.#waiting.length > 0;
      if (group.length === 0) return;
      this.#commits++;
      this.#commitGroup(group).finally(() => {
        this.#commits--;
        for (const { write } of group) for (const claim of write.claims) this.#claimed.delete(claim);
        this.#schedulePump();
      });
    }
  }

  /** Takes the oldest writes that fit together; what is passed over keeps its place, and its claims hold back later writes. */
  #takeGroup(): WaitingWrite[] {
    const group: WaitingWrite[] = [];
    const passedOver: WaitingWrite[] = [];
    const heldBack = new Set<string>();
    const window = this.#waiting.slice(0, WINDOW);
    let total: WriteSize = { checks: 0, mutations: 0, bytes: 0, keyBytes: 0 };
    for (const waiting of window) {
      const { claims } = waiting.write;
      const sum = addSizes(total, waiting.size);
      const free = claims.every((claim) => !this.#claimed.has(claim) && !heldBack.has(claim));
      if (free && this.#fits(sum)) {
        total = sum;
        group.push(waiting);
        for (const claim of claims) this.#claimed.add(claim);
      } else {
        passedOver.push(waiting);
        for (const claim of claims) heldBack.add(claim);
      }
    }
    this.#waiting.splice(0, window.length, ...passedOver);
    this.#waitingBytes -= total.bytes;
    return group;
  }

  #fits(size: WriteSize): boolean {
    const limits = this.#limits;
    return size.checks <= limits.maxChecks && size.mutations <= limits.maxMutations &&
      size.bytes <= limits.maxAtomicBytes && size.keyBytes <= limits.maxKeyBytes;
  }

  /** Never rejects: every outcome goes to the writes. */
  async #commitGroup(accepted: readonly WaitingWrite[]): Promise<void> {
    let group = accepted;
    for (let attempt = 0;; attempt++) {
      try {
        const result = await this.#atomicOf(group).commit();
        if (result.ok) { for (const { resolve } of group) resolve(result.versionstamp); }
        else if (group.length === 1) group[0]!.resolve(null);
        else await this.#commitApart(group);
        return;
      } catch (error) {
        if (!isBusyError(error)) return await this.#failed(group, error);
        group = this.#giveUpLate(group, error);
        if (group.length === 0) return;
        this.#logger?.debug("store is locked", { writes: group.length, attempt });
      }
      await this.#retry.clock.sleep(busyDelayMs(attempt, this.#retry.random));
    }
  }

  #atomicOf(group: readonly WaitingWrite[]): Deno.AtomicOperation {
    const atomic = this.#kv.atomic();
    for (const { write } of group) {
      atomic.check(...write.checks);
      for (const { key, value, expireInMs } of write.sets) {
        atomic.set(key, value, expireInMs === undefined ? {} : { expireIn: expireInMs });
      }
      for (const key of write.deletes) atomic.delete(key);
    }
    return atomic;
  }

  /** A check of one of them failed, so none happened: those without checks go together, the others each alone. */
  async #commitApart(group: readonly WaitingWrite[]): Promise<void> {
    const unchecked = group.filter(({ size }) => size.checks === 0);
    const alone = group.filter(({ size }) => size.checks > 0).map((waiting) => [waiting]);
    await Promise.all([...(unchecked.length > 0 ? [unchecked] : []), ...alone].map((part) => this.#commitGroup(part)));
  }

  /** Whatever is wrong with one write must not fail the others. */
  async #failed(group: readonly WaitingWrite[], cause: unknown): Promise<void> {
    if (group.length > 1) {
      await Promise.all(group.map((waiting) => this.#commitGroup([waiting])));
      return;
    }
    this.#logger?.error("store could not write", { error: String(cause) });
    group[0]!.reject(new VerbatimError("internal", "The store could not write.", { cause }));
  }

  #giveUpLate(group: readonly WaitingWrite[], cause: unknown): WaitingWrite[] {
    const nowMs = this.#retry.clock.now();
    return group.filter(({ acceptedAtMs, reject }) => {
      const waitedMs = nowMs - acceptedAtMs;
      if (waitedMs < this.#retry.busyDeadlineMs) return true;
      this.#logger?.warn("store stayed locked", { waited_ms: waitedMs });
      reject(busyError(waitedMs, cause));
      return false;
    });
  }
}

function addSizes(left: WriteSize, right: WriteSize): WriteSize {
  return {
    checks: left.checks + right.checks,
    mutations: left.mutations + right.mutations,
    bytes: left.bytes + right.bytes,
    keyBytes: left.keyBytes + right.keyBytes,
  };
}

function sizeOf(write: KvWrite): WriteSize {
  let keyBytes = 0;
  let valueBytes = 0;
  for (const { key, value } of write.sets) {
    keyBytes += keyBytesAtMost(key);
    valueBytes += value.byteLength;
  }
  for (const key of write.deletes) keyBytes += keyBytesAtMost(key);
  for (const { key } of write.checks) keyBytes += keyBytesAtMost(key);
  return {
    checks: write.checks.length,
    mutations: write.sets.length + write.deletes.length,
    bytes: keyBytes + valueBytes,
    keyBytes,
  };
}
