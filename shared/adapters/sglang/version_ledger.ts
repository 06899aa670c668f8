/** Which weights the workers behind an engine were last seen to have. It asks nobody. */

/** What was known when a call was sent, and whether that was contradicted since. */
export interface VersionWatch {
  /** The version of whatever worker serves the call; null where it was not known. */
  readonly before: string | null;
  /** Whether no other version was seen since. */
  readonly unchanged: boolean;
}

/** A version that is known, and how often it was contradicted. */
interface Known {
  version: string | null;
  changes: number;
}

/**
 * The versions. Of a worker that is called directly the latest one counts. Behind a router nobody knows which worker
 * serves a call: there a version is known only where all workers were seen to have it, and not once another was seen.
 */
export class VersionLedger {
  readonly #byWorker = new Map<string, Known>();
  readonly #common: Known = { version: null, changes: 0 };
  /** Behind a router: when each version was seen last, in notes. */
  readonly #seenAt = new Map<string, number>();
  #notes = 0;

  /** A worker that is called directly was seen to have this version. */
  note(url: string, version: string): void {
    change(this.#of(url), version);
  }

  /** Some worker behind a router was seen to have this version. */
  noteCommon(version: string): void {
    this.#seenAt.set(version, ++this.#notes);
    if (this.#common.version !== version) this.forgetCommon();
  }

  /** Where the notes of workers behind a router stand, for `agree`. */
  get notes(): number {
    return this.#notes;
  }

  /**
   * Every worker behind a router was asked, and all of them have this version. It counts where no reply has told of
   * another one since the notes stood so: some of the answers may be older than an update.
   */
  agree(version: string, notes: number): void {
    for (const [other, at] of this.#seenAt) if (other !== version && at > notes) return;
    this.#seenAt.clear();
    change(this.#common, version);
  }

  /** It is no longer known that all workers behind a router have one version. */
  forgetCommon(): void {
    if (this.#common.version === null) return;
    this.#common.version = null;
    this.#common.changes++;
  }

  /**
   * A worker or, with null, some worker behind a router gets weights that may be called as the ones before: what runs now
   * is not told apart by name.
   */
  doubt(url: string | null): void {
    this.#of(url).changes++;
  }

  /** What is known now of a worker or, with null, of all workers behind a router. */
  version(url: string | null): string | null {
    return this.#of(url).version;
  }

  /** Begins to watch, for a call to this worker or, with null, through a router. */
  watch(url: string | null): VersionWatch {
    const known = this.#of(url);
    const { version: before, changes } = known;
    return {
      before,
      get unchanged() {
        return known.changes === changes;
      },
    };
  }

  #of(url: string | null): Known {
    if (url === null) return this.#common;
    const known = this.#byWorker.get(url) ?? { version: null, changes: 0 };
    this.#byWorker.set(url, known);
    return known;
  }
}

function change(known: Known, version: string): void {
  if (known.version === version) return;
  known.version = version;
  known.changes++;
}
