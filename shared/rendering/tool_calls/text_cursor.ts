/**
 * The text of one completion as it arrives: a readable window, and the span kept for whoever may need its raw text again.
 * It knows no format.
 */

/** A step of a machine: it yields where it needs more text, and returns when it is done. */
export type Step<T> = Generator<undefined, T, undefined>;

/** Offsets are absolute: UTF-16 units from the start of the text. `position` counts within the window. */
export class TextCursor {
  /** The text that can be read now. */
  window = "";
  /** Where reading stands in the window. */
  position = 0;
  /** Whether all text has been fed. */
  ended = false;
  /** Characters looked at, those looked at again included: what linear time is measured by. */
  work = 0;

  #base = 0;
  #keepFrom = Infinity;
  #pieces: string[] = [];
  #pieceOffsets: number[] = [];

  /** Where reading stands in the text. */
  get offset(): number {
    return this.#base + this.position;
  }

  /** Where the text fed so far ends. */
  get endOffset(): number {
    return this.#base + this.window.length;
  }

  /** Whether nothing is left, nor will be. */
  get atEnd(): boolean {
    return this.ended && this.position === this.window.length;
  }

  /** Adds text behind the window; what was read is let go, or set aside if it is kept. */
  feed(text: string): void {
    this.#passRead();
    this.window = this.window.length === 0 ? text : this.window + text;
    this.work += text.length;
  }

  /** Keeps the text from `offset` on readable with `slice` and `rewind`. A later call with a higher offset lets go of what is before it. */
  keep(offset: number): void {
    this.#keepFrom = offset;
    let passed = 0;
    while (passed < this.#pieces.length) {
      const piece = this.#pieces[passed] ?? "";
      if ((this.#pieceOffsets[passed] ?? 0) + piece.length > offset) break;
      passed++;
    }
    if (passed > 0) {
      this.#pieces.splice(0, passed);
      this.#pieceOffsets.splice(0, passed);
    }
  }

  /** Keeps nothing any more. */
  release(): void {
    this.#keepFrom = Infinity;
    this.#pieces = [];
    this.#pieceOffsets = [];
  }

  /** The text between two offsets, both kept. Costs its own length, however many pieces it came in. */
  slice(from: number, to: number): string {
    if (from >= this.#base) return this.window.slice(from - this.#base, to - this.#base);
    let low = 0;
    let high = this.#pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#pieceOffsets[middle] ?? 0) <= from) low = middle;
      else high = middle - 1;
    }
    const parts: string[] = [];
    for (let index = low; index < this.#pieces.length; index++) {
      const start = this.#pieceOffsets[index] ?? 0;
      if (start >= to) break;
      const piece = this.#pieces[index] ?? "";
      parts.push(
        from > start || to < start + piece.length ? piece.slice(Math.max(0, from - start), to - start) : piece,
      );
    }
    if (to > this.#base) parts.push(this.window.slice(0, to - this.#base));
    return parts.join("");
  }

  /** Goes back to a kept offset; the text from there on is read again. */
  rewind(offset: number): void {
    if (offset >= this.#base) {
      this.work += Math.max(0, this.offset - offset);
      this.position = offset - this.#base;
      return;
    }
    this.window = this.slice(offset, this.endOffset);
    this.work += this.window.length;
    while (this.#pieces.length > 0) {
      const last = this.#pieces.length - 1;
      const start = this.#pieceOffsets[last] ?? 0;
      if (start < offset) {
        this.#pieces[last] = (this.#pieces[last] ?? "").slice(0, offset - start);
        break;
      }
      this.#pieces.pop();
      this.#pieceOffsets.pop();
    }
    this.#base = offset;
    this.position = 0;
  }

  #passRead(): void {
    if (this.position === 0) return;
    if (this.#keepFrom < this.offset) {
      const from = Math.max(0, this.#keepFrom - this.#base);
      this.#pieces.push(this.window.slice(from, this.position));
      this.#pieceOffsets.push(this.#base + from);
    }
    this.window = this.window.slice(this.position);
    this.#base += this.position;
    this.position = 0;
  }
}
