/** Stretches of tokens by the weights that sampled them, put behind one another. It knows no turns. */

import type { VersionSegment } from "./turn.ts";

/**
 * Adds a segment at the end; an empty one adds nothing. Neighbours of one version are one segment, whatever lies
 * between them. `segments` is changed.
 */
export function addSegment(segments: VersionSegment[], segment: VersionSegment): void {
  if (segment.end <= segment.start) return;
  const last = segments.at(-1);
  if (last !== undefined && last.version === segment.version && last.exact === segment.exact) {
    segments[segments.length - 1] = { ...last, end: segment.end };
  } else {
    segments.push(segment);
  }
}

/** As {@linkcode addSegment}, for segments that count from `offset`. */
export function addSegments(segments: VersionSegment[], added: readonly VersionSegment[], offset: number): void {
  for (const segment of added) {
    addSegment(segments, { ...segment, start: offset + segment.start, end: offset + segment.end });
  }
}
