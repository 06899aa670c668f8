/** What a KV database takes in one operation, and how patient the store is. It knows no keys. */

/** Limits of the store. The defaults hold for a file, for memory and for a KV Connect server, whichever is tightest. */
export interface KvLimits {
  /** Most checks in one atomic write. A KV Connect server takes 10, a local database 100. */
  readonly maxChecks: number;
  /** Most mutations in one atomic write (the database's own limit is 1,000). */
  readonly maxMutations: number;
  /** Most bytes of keys and values in one atomic write (819,200). */
  readonly maxAtomicBytes: number;
  /** Most bytes of keys in one atomic write (81,920). */
  readonly maxKeyBytes: number;
  /** Most bytes of one value (65,536). */
  readonly maxValueBytes: number;
  /** Bytes of a chunk; below `maxValueBytes`. */
  readonly chunkBytes: number;
  /** Most bytes of a turn's bulk that go into one atomic write with its record; larger bulk is written ahead. */
  readonly maxInlineBytes: number;
  /** Commits under way at once. While all are, writes gather and go together. */
  readonly maxCommits: number;
  /** How long a write that may linger waits for others to go with. */
  readonly lingerMs: number;
  /** Most bytes of writes waiting; beyond it a write is refused at once. */
  readonly maxWaitingBytes: number;
  /** How long a write or read is tried again while the database is locked. */
  readonly busyDeadlineMs: number;
}

export const DEFAULT_KV_LIMITS: KvLimits = {
  maxChecks: 10,
  maxMutations: 900,
  maxAtomicBytes: 800_000,
  maxKeyBytes: 80_000,
  maxValueBytes: 65_000,
  chunkBytes: 61_440,
  maxInlineBytes: 600_000,
  maxCommits: 4,
  lingerMs: 20,
  maxWaitingBytes: 268_435_456,
  busyDeadlineMs: 10_000,
};

/** Room kept for the task record when it grows by an append: what is created or updated must be smaller by this much. */
export const RECORD_HEADROOM_BYTES = 1_000;
