/** Which sampling parameters a release of SGLang does not know yet: it answers one with a bare 500. It asks nobody. */

import type { SamplingParams } from "../../core/sampling.ts";

type Release = readonly [major: number, minor: number, patch: number];

/** The first release of each that came after 0.4.6; that one has all others. */
const FIRST_RELEASES: readonly (readonly [parameter: keyof SamplingParams, first: Release])[] = [
  ["logit_bias", [0, 4, 8]],
  ["sampling_seed", [0, 5, 3]],
  ["stop_regex", [0, 5, 4]],
];

/** A parameter of a request, and the release that it takes. */
export interface YoungParameter {
  readonly parameter: string;
  /** `0.5.3`. */
  readonly since: string;
}

/** The parameters of this request that came after 0.4.6. */
export function youngParameters(sampling: SamplingParams): YoungParameter[] {
  return FIRST_RELEASES.flatMap(([parameter, first]) =>
    sampling[parameter] === undefined ? [] : [{ parameter, since: first.join(".") }]
  );
}

/** Whether a release is older than another. One that is not to be read is not: a build of one's own may be anything. */
export function isOlder(release: string, than: string): boolean {
  const [one, other] = [parsed(release), parsed(than)];
  if (one === null || other === null) return false;
  const at = one.findIndex((part, k) => part !== other[k]);
  return at >= 0 && one[at]! < other[at]!;
}

/** `0.5.15.post1` is 0.5.15. A source tree without tags calls itself 0.0.0. */
function parsed(release: string): Release | null {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(release);
  if (match === null) return null;
  const [major, minor, patch] = [Number(match[1]), Number(match[2]), Number(match[3])];
  return major === 0 && minor === 0 ? null : [major, minor, patch];
}
