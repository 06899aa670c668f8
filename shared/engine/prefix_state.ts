/**
 * What the model needs to know of a prefix, kept up to date id by id: the last ids, the distance to the last turn
 * boundary, and the place in a scripted reply. Everything is a function of the ids alone. It does not know of logits.
 */

import { mix, unit53 } from "./hashing.ts";
import type { CompiledScript, ScriptedReply, ScriptReader } from "./script.ts";

/** How turns are marked in this vocabulary. */
export interface TurnMarks {
  /** Ids that end a turn. */
  readonly stopIds: ReadonlySet<number>;
  /** The generation prompt's fixed part; empty where the vocabulary has none. */
  readonly generationPrompt: Uint32Array;
  /** What a template may put after it (an empty or an open reasoning block), longest first. */
  readonly suffixes: readonly Uint32Array[];
}

/** Progress of a reply that begins after a suffix: -1 once the ids depart from it. */
interface Track {
  readonly suffix: Uint32Array;
  position: number;
}

const NO_SUFFIX = new Uint32Array(0);

/** A prefix, grown by `push`. */
export class PrefixState {
  /** Ids since the last id that begins or ends a turn. */
  sinceBoundary = 0;
  readonly #marks: TurnMarks;
  readonly #script: ScriptReader | null;
  #ids: Uint32Array;
  #length = 0;
  #segmentStart = 0;
  #generationPrompts = 0;
  #inReply = false;
  #reply: ScriptedReply | null = null;
  readonly #tracks: Track[];
  #hashHigh = 0x452821e6;
  #hashLow = 0x38d01377;

  /** The empty prefix. `capacity` is a guess of the final length. */
  constructor(marks: TurnMarks, options: { script: CompiledScript | null; capacity: number }) {
    this.#marks = marks;
    this.#script = options.script?.reader() ?? null;
    this.#ids = new Uint32Array(Math.max(16, options.capacity));
    this.#tracks = [NO_SUFFIX, ...marks.suffixes].map((suffix) => ({ suffix, position: 0 }));
  }

  /** Number of ids. */
  get length(): number {
    return this.#length;
  }

  /** The id `back` places before the end, 0 being the last; -1 before the beginning. */
  last(back: number): number {
    return back < this.#length ? this.#ids[this.#length - 1 - back]! : -1;
  }

  /** A number in [0, 1) that is a function of the seed and all ids so far. */
  seededUnit(seed: number): number {
    const high = Math.floor(seed / 4294967296);
    return unit53(mix(mix(this.#hashHigh, high), seed), mix(mix(this.#hashLow, seed), high));
  }

  /** The next id of the scripted reply that the ids since the generation prompt are a prefix of, or null. */
  scripted(): { readonly id: number; readonly sharpness: number } | null {
    const reply = this.#reply;
    if (reply === null) return null;
    for (const { suffix, position } of this.#tracks) {
      const place = position - suffix.length;
      if (place >= 0 && place < reply.ids.length) return { id: reply.ids[place]!, sharpness: reply.sharpness };
    }
    return null;
  }

  /** Appends one id. */
  push(id: number): void {
    if (this.#length === this.#ids.length) {
      const grown = new Uint32Array(this.#ids.length * 2);
      grown.set(this.#ids);
      this.#ids = grown;
    }
    this.#ids[this.#length++] = id;
    this.#hashHigh = mix(this.#hashHigh, id);
    this.#hashLow = mix(this.#hashLow, id + 1);
    const { generationPrompt, stopIds } = this.#marks;
    this.sinceBoundary = stopIds.has(id) || id === generationPrompt[0] ? 0 : this.sinceBoundary + 1;
    if (this.#script === null) return;
    if (this.#reply !== null) this.#follow(id, this.#reply);
    if (stopIds.has(id)) {
      // Only the first stop after a generation prompt ends the reply; other messages end with stop tokens too.
      if (this.#inReply) {
        this.#reply = null;
        this.#inReply = false;
        this.#segmentStart = this.#length;
      }
    }
    if (this.#endsWith(generationPrompt)) this.#begin(this.#script, generationPrompt.length);
  }

  #begin(script: ScriptReader, markLength: number): void {
    const ids = this.#ids.subarray(this.#segmentStart, this.#length - markLength);
    this.#reply = script.next({ index: this.#generationPrompts, ids });
    this.#generationPrompts++;
    this.#inReply = true;
    this.#segmentStart = this.#length;
    for (const track of this.#tracks) track.position = 0;
  }

  #follow(id: number, reply: ScriptedReply): void {
    for (const track of this.#tracks) {
      if (track.position < 0) continue;
      const { suffix, position } = track;
      const expected = position < suffix.length ? suffix[position] : reply.ids[position - suffix.length];
      track.position = id === expected ? position + 1 : -1;
    }
  }

  #endsWith(mark: Uint32Array): boolean {
    if (mark.length === 0 || this.#length < mark.length) return false;
    const start = this.#length - mark.length;
    for (let i = mark.length - 1; i >= 0; i--) if (this.#ids[start + i] !== mark[i]) return false;
    return true;
  }
}
