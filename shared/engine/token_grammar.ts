/**
 * Regular grammars over token ids, and the place of an output in one: which ids may come next. It does not know what
 * the ids say.
 */

import type { NextTokenLogits } from "./next_token_logits.ts";

/** A grammar over ids. */
export type TokenGrammar =
  /** These ids, one after the other. */
  | { readonly kind: "ids"; readonly ids: ArrayLike<number> }
  /** Any one of these ids. */
  | { readonly kind: "any"; readonly ids: ReadonlySet<number> }
  | { readonly kind: "sequence"; readonly parts: readonly TokenGrammar[] }
  | { readonly kind: "choice"; readonly options: readonly TokenGrammar[] }
  | { readonly kind: "repeat"; readonly of: TokenGrammar; readonly least: number; readonly most: number };

interface State {
  /** Reached without an id. */
  readonly free: number[];
  readonly steps: { readonly on: ReadonlySet<number>; readonly to: number }[];
}

/** An output in a grammar. */
export class GrammarState {
  readonly #states: State[] = [];
  readonly #accepting: number;
  readonly #stopIds: Iterable<number>;
  #current: Set<number>;

  /** Nothing said yet. Once the grammar is fulfilled the stop ids may come. */
  constructor(grammar: TokenGrammar, stopIds: Iterable<number>) {
    this.#stopIds = stopIds;
    const start = this.#add();
    this.#accepting = this.#build(grammar, start);
    this.#current = this.#closure([start]);
  }

  /** Ids that may come next. */
  allowed(): Set<number> {
    const allowed = new Set<number>();
    for (const state of this.#current) {
      for (const { on } of this.#states[state]!.steps) for (const id of on) allowed.add(id);
    }
    if (this.#current.has(this.#accepting)) { for (const id of this.#stopIds) allowed.add(id); }
    return allowed;
  }

  /** Says an id; one that was not allowed leaves nothing but the stop ids. */
  push(id: number): void {
    const reached: number[] = [];
    for (const state of this.#current) {
      for (const { on, to } of this.#states[state]!.steps) if (on.has(id)) reached.push(to);
    }
    this.#current = this.#closure(reached.length > 0 ? reached : [this.#accepting]);
  }

  /** Makes every id impossible that may not come next. */
  apply(logits: NextTokenLogits): void {
    logits.restrict(this.allowed());
  }

  /** Builds from a state; the state after. */
  #build(grammar: TokenGrammar, from: number): number {
    if (grammar.kind === "ids") return Array.from(grammar.ids).reduce((at, id) => this.#step(at, new Set([id])), from);
    if (grammar.kind === "any") return this.#step(from, grammar.ids);
    if (grammar.kind === "sequence") return grammar.parts.reduce((at, part) => this.#build(part, at), from);
    const end = this.#add();
    if (grammar.kind === "choice") {
      for (const option of grammar.options) {
        const start = this.#add();
        this.#states[from]!.free.push(start);
        this.#states[this.#build(option, start)]!.free.push(end);
      }
      return end;
    }
    let at = from;
    for (let count = 0; count < grammar.most; count++) {
      if (count >= grammar.least) this.#states[at]!.free.push(end);
      at = this.#build(grammar.of, at);
    }
    this.#states[at]!.free.push(end);
    return end;
  }

  #step(from: number, on: ReadonlySet<number>): number {
    const to = this.#add();
    this.#states[from]!.steps.push({ on, to });
    return to;
  }

  #add(): number {
    return this.#states.push({ free: [], steps: [] }) - 1;
  }

  #closure(states: readonly number[]): Set<number> {
    const reached = new Set(states);
    for (const state of reached) for (const next of this.#states[state]!.free) reached.add(next);
    return reached;
  }
}
