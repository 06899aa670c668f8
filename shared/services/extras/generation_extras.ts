/** The extras of one generation, put together over as many engine calls as it took. It knows no engine and no wire. */

import { type Experts, joinExperts, joinTopPIds, type TopPIds } from "../../core/extra_arrays.ts";
import { isMissing, type MissingExtra, type SpecInfo } from "../../core/turn_extras.ts";
import type { EngineExtras, ExtrasAsked } from "../../ports/engine.ts";

/** How one call ended. */
export interface CallEnd {
  /** Absent: nothing is known. */
  readonly extras: EngineExtras | undefined;
  /** Tokens it sampled. */
  readonly sampled: number;
  /** Whether the engine gave it up. */
  readonly aborted: boolean;
}

/** Asks call by call for what is still unknown. What a call sampled without an extra, the generation lacks for good. */
export class GenerationExtras {
  readonly #asked: ExtrasAsked;
  readonly #experts = new Parts<Experts>();
  readonly #topPIds = new Parts<TopPIds>();
  readonly #specInfo = new Parts<SpecInfo>();

  constructor(asked: ExtrasAsked = {}) {
    this.#asked = asked;
  }

  /** What the next call is asked for; null: nothing. */
  ask(): ExtrasAsked | null {
    const { expertsFrom, topPIds, specInfo } = this.#asked;
    const last = this.#experts.all.at(-1);
    const asked: ExtrasAsked = {
      ...(expertsFrom === undefined || this.#experts.missing !== null
        ? {}
        : { expertsFrom: last === undefined ? expertsFrom : last.start + last.rows }),
      ...(topPIds === undefined || this.#topPIds.missing !== null ? {} : { topPIds }),
      ...(specInfo === undefined || this.#specInfo.missing !== null ? {} : { specInfo }),
    };
    return Object.keys(asked).length === 0 ? null : asked;
  }

  /** Takes what a call said. */
  add(end: CallEnd): void {
    this.#experts.add(end.extras?.experts, end);
    this.#topPIds.add(end.extras?.topPIds, end);
    this.#specInfo.add(end.extras?.specInfo, end);
  }

  /** An entry for each extra that was asked for. */
  result(): EngineExtras {
    const { expertsFrom, topPIds, specInfo } = this.#asked;
    return {
      ...(expertsFrom === undefined ? {} : { experts: this.#experts.joined(joinExperts) }),
      ...(topPIds === undefined ? {} : { topPIds: this.#topPIds.joined(joinTopPIds) }),
      ...(specInfo === undefined ? {} : { specInfo: this.#specInfo.joined(sumSpecInfo) }),
    };
  }
}

/** One extra, part by part. */
class Parts<Part extends object> {
  readonly all: Part[] = [];
  missing: MissingExtra | null = null;

  add(part: Part | MissingExtra | undefined, { sampled, aborted }: CallEnd): void {
    if (part !== undefined && !isMissing(part)) this.all.push(part);
    // A call that sampled nothing lost nothing.
    else if (sampled > 0) this.missing ??= aborted ? { missing: "interrupted" } : part ?? { missing: "dropped" };
  }

  joined(join: (parts: readonly Part[]) => Part | null): Part | MissingExtra {
    if (this.missing !== null) return this.missing;
    if (this.all.length === 0) return { missing: "dropped" };
    return join(this.all) ?? { missing: "inconsistent" };
  }
}

function sumSpecInfo(parts: readonly SpecInfo[]): SpecInfo {
  return {
    acceptedTokens: parts.reduce((sum, part) => sum + part.acceptedTokens, 0),
    draftTokens: parts.reduce((sum, part) => sum + part.draftTokens, 0),
    verifications: parts.reduce((sum, part) => sum + part.verifications, 0),
  };
}
