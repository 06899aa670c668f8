/** The turns of one path as arrays a trainer reads. It decides nothing: which path, and what trains, is said elsewhere. */

import { VerbatimError } from "./errors.ts";
import type { Turn, VersionSegment } from "./turn.ts";
import { addSegments } from "./version_segments.ts";

/** Where the tokens of a turn's action lie. */
export interface TurnSpan {
  /** The turn. */
  readonly turn: Turn;
  /** First position in the response. */
  readonly start: number;
  /** Position after the last. */
  readonly end: number;
}

/** A path: the first turn's prompt, then everything that was sampled or observed after it. */
export interface PackedPath {
  /** The first turn's prompt. */
  readonly prompt: Uint32Array;
  /** Actions and the observations between them. */
  readonly response: Uint32Array;
  /** The engine's logprob of each sampled token, 0.0 of the others. */
  readonly logprobs: Float64Array;
  /** 1 where the policy sampled the token. */
  readonly sampledMask: Uint8Array;
  /** 1 where the token is of an action that the teacher decided. */
  readonly teacherMask: Uint8Array;
  /** The actions, the policy's and the teacher's, in order. */
  readonly spans: readonly TurnSpan[];
  /** Which weights sampled what, in response positions; neighbours of one version are one segment. */
  readonly weightVersions: readonly VersionSegment[];
}

/** Turns that don't fit together: no sample is better than a wrong one. */
export class InconsistentSeries extends VerbatimError {
  /** Why there is no sample, as exports say it. */
  readonly reason: string;

  /** `turn` is the first that does not fit, and `why` in what. */
  constructor(turn: number | null, why: string) {
    super("internal", "The stored series is inconsistent; nothing is exported", { cause: new Error(why) });
    this.reason = turn === null ? "inconsistent series" : `inconsistent series at turn ${turn}`;
  }
}

/** {@linkcode packPath}, with what does not fit together as a value. */
export function tryPackPath(turns: readonly Turn[]): PackedPath | InconsistentSeries {
  try {
    return packPath(turns);
  } catch (error) {
    if (error instanceof InconsistentSeries) return error;
    throw error;
  }
}

/**
 * Packs the turns of a path, each the parent of the next, the first with its whole prompt. Anything that does not fit
 * together (a parent, a length, the prompt count a turn was sampled with) is {@linkcode InconsistentSeries}.
 */
export function packPath(turns: readonly Turn[]): PackedPath {
  const [first] = turns;
  if (first === undefined) throw new InconsistentSeries(null, "A path has no turns");
  if (first.record.parent !== null) {
    throw new InconsistentSeries(first.record.turn, "A path does not begin with a whole prompt");
  }
  const length = turns.reduce((sum, turn) => sum + turn.observation.length + turn.completion.length, 0) -
    first.observation.length;
  const response = new Uint32Array(length);
  const logprobs = new Float64Array(length);
  const sampledMask = new Uint8Array(length);
  const teacherMask = new Uint8Array(length);
  const spans: TurnSpan[] = [];
  const weightVersions: VersionSegment[] = [];
  let at = 0;
  let previous: Turn | null = null;
  for (const turn of turns) {
    assertWhole(turn, previous, first.observation.length + at);
    if (previous !== null) {
      response.set(turn.observation, at);
      at += turn.observation.length;
    }
    const start = at;
    response.set(turn.completion, at);
    logprobs.set(turn.logprobs, at);
    (turn.record.actor === "teacher" ? teacherMask : sampledMask).fill(1, at, at + turn.completion.length);
    at += turn.completion.length;
    spans.push({ turn, start, end: at });
    addSegments(weightVersions, turn.record.weightVersions, start);
    previous = turn;
  }
  return { prompt: first.observation, response, logprobs, sampledMask, teacherMask, spans, weightVersions };
}

function assertWhole(turn: Turn, previous: Turn | null, tokensBefore: number): void {
  const { record } = turn;
  const broken = (why: string) => new InconsistentSeries(record.turn, why);
  if (previous !== null && record.parent !== previous.record.turn) {
    throw broken("A path's turns do not follow each other");
  }
  if (turn.completion.length !== turn.logprobs.length) throw broken("A turn has not one logprob a token");
  if (turn.completion.length !== record.completionTokens || turn.observation.length !== record.observationTokens) {
    throw broken("A turn's arrays do not have the lengths of its record");
  }
  const covered = record.weightVersions.reduce((end, segment) => segment.start === end ? segment.end : NaN, 0);
  const sampled = record.actor === "teacher" ? 0 : record.completionTokens;
  if (covered !== sampled) throw broken("A turn's weight versions do not cover its tokens");
  const prompt = tokensBefore + (previous === null ? 0 : turn.observation.length);
  if (record.promptTokens !== prompt) {
    throw broken(`A turn was sampled after ${record.promptTokens} tokens, its path has ${prompt}`);
  }
}
