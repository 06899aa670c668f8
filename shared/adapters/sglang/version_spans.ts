/** Which weights sampled which tokens of one reply, as far as its frames and what was known before tell. */

import type { VersionSegment } from "../../core/turn.ts";
import type { VersionWatch } from "./version_ledger.ts";

/**
 * The versions that the frames of one reply name. SGLang stamps a frame when it is sent: where weights change under a
 * running request, the place of the change is known to a frame, not to a token; and a reply of one frame says only which
 * weights came last. So its stamp holds for every token only where the worker had that version before, too.
 */
export class VersionSpans {
  readonly #watch: VersionWatch;
  readonly #seen: { readonly version: string; end: number }[] = [];
  #changed = false;

  /** `watch` began before the request was sent. */
  constructor(watch: VersionWatch) {
    this.#watch = watch;
  }

  /** A frame names a version after so many sampled tokens. Frames that name none change nothing. */
  note(version: unknown, sampled: number): void {
    if (typeof version !== "string") return;
    const last = this.#seen.at(-1);
    this.#changed ||= version !== (last?.version ?? this.#watch.before);
    if (last?.version === version) last.end = sampled;
    else if (sampled > (last?.end ?? 0)) this.#seen.push({ version, end: sampled });
  }

  /** The segments of so many sampled tokens; none of none. */
  segments(sampled: number): VersionSegment[] {
    if (sampled === 0) return [];
    if (this.#seen.length === 0) return [{ version: null, start: 0, end: sampled, exact: false }];
    const exact = !this.#changed && this.#watch.unchanged;
    return this.#seen.map(({ version, end }, k) => ({
      version,
      start: this.#seen[k - 1]?.end ?? 0,
      end: k === this.#seen.length - 1 ? sampled : end,
      exact,
    }));
  }
}
