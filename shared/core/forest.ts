/**
 * The requests of one task as a tree of prompt prefixes, built as turns are committed. A lookup walks the request's own
 * units and never the stored turns. It knows nothing of policies: every request has its place, whatever it did.
 */

import {
  type FailedEntry,
  type ForestEntry,
  ForestNode,
  prefixOf,
  type ReplayEntry,
  Samples,
  type TurnEntry,
} from "./forest_node.ts";
import { renderKey } from "./request_units.ts";
import type { RequestHistory, TurnHistory } from "./turn_history.ts";

/** One conversation start: requests that share their first unit, tools and settings. */
export interface ForestRoot {
  /** First unit, tools and settings. */
  readonly key: string;
  /** Its place among the roots. */
  readonly order: number;
  /** Whether it offers tools. */
  readonly hasTools: boolean;
  /** Whether it bears the task's marks of the main line. */
  selected: boolean;
  /** Whether one of its turns was appended to. */
  appendedTo: boolean;
}

/** The tree of one task. */
export class Forest {
  /** The prefix of no units. */
  readonly root: ForestNode = new ForestNode(null, null);
  /** Every request in the order added. */
  readonly entries: ForestEntry[] = [];
  readonly #turns: TurnEntry[] = [];
  readonly #roots = new Map<string, ForestRoot>();
  /** The first root of each rank: marked, with tools, appended to, any. */
  readonly #firstRoots: (ForestRoot | null)[] = [null, null, null, null];
  /** Where the units of the request stand that was looked at last: the next one shares most of them. */
  #positions: { readonly history: RequestHistory; readonly messages: readonly number[] } | null = null;

  /** Number of turns. */
  get turns(): number {
    return this.#turns.length;
  }

  /** Adds the next turn. `parent` is the turn whose series it extends. Turns come in the order of their numbers. */
  add(turn: number, parent: number | null, history: TurnHistory): void {
    if (turn !== this.#turns.length) throw new Error(`Turn ${turn} was added where ${this.#turns.length} was due`);
    if (parent !== null && !(parent < turn)) throw new Error(`Turn ${turn} cannot extend turn ${parent}`);
    const node = this.#path(history);
    const entry: TurnEntry = {
      kind: "turn",
      entry: this.entries.length,
      node,
      root: rootKey(prefixOf(node, 1).unit?.hash ?? "", history),
      repeats: node.latestEnd?.entry ?? null,
      turn,
      parent,
      history,
    };
    for (let at: ForestNode | null = node; at !== null; at = at.parent) {
      at.owner ??= turn;
      at.latestTurn = turn;
    }
    const key = renderKey(history);
    const samples = node.samples.get(key);
    if (samples === undefined) node.samples.set(key, new Samples(entry));
    else samples.add(entry);
    if (history.open !== null) node.parent?.addOpen(node, history.open, history);
    this.#turns.push(entry);
    this.#end(entry, history);
  }

  /** Adds a request that failed. It serves nothing: only the same request again is related to it. */
  addFailed(history: RequestHistory): void {
    const node = this.#path(history);
    const entry: FailedEntry = {
      kind: "failed",
      entry: this.entries.length,
      node,
      root: rootKey(prefixOf(node, 1).unit?.hash ?? "", history),
      repeats: node.latestEnd?.entry ?? null,
      history,
    };
    this.#end(entry, history);
  }

  /** Adds a request that was answered with the stored reply of a turn. */
  addReplay(turn: number): void {
    const answers = this.turn(turn);
    const { node } = answers;
    const entry: ReplayEntry = {
      kind: "replay",
      entry: this.entries.length,
      node,
      root: answers.root,
      repeats: node.latestEnd?.entry ?? null,
      answers,
    };
    node.latestEnd = entry;
    this.entries.push(entry);
  }

  /** The entry of a turn. */
  turn(turn: number): TurnEntry {
    const entry = this.#turns[turn];
    if (entry === undefined) throw new Error(`There is no turn ${turn} among ${this.#turns.length}`);
    return entry;
  }

  /** The turns from the first of a series to this one, along the series extended. */
  path(turn: number): number[] {
    const path: number[] = [];
    for (let at: number | null = turn; at !== null; at = this.turn(at).parent) path.push(at);
    return path.reverse();
  }

  /**
   * The root of the main line as far as known: the first that bears the task's marks, else the first with tools, else
   * the first that was appended to, else the first. `candidate` is a request about to be added.
   */
  mainRoot(candidate: Omit<ForestRoot, "order" | "appendedTo">): string {
    const known = this.#firstRoots;
    if (known[0]) return known[0].key;
    if (candidate.selected) return candidate.key;
    if (known[1]) return known[1].key;
    if (candidate.hasTools) return candidate.key;
    return known[2]?.key ?? known[3]?.key ?? candidate.key;
  }

  /** Where the leading units of a request stand in its `messages` or `input`; `count` of them, as in {@linkcode UnitBase.message}. */
  messagesOf(history: RequestHistory, count: number): number[] {
    const chain: RequestHistory[] = [];
    const known = this.#positions;
    let at: RequestHistory | null = history;
    for (let to = count; at !== null && !(at === known?.history && to <= known.messages.length);) {
      chain.push(at);
      to = Math.min(to, at.shared?.units ?? 0);
      at = at.shared === null || to === 0 ? null : this.turn(at.shared.turn).history;
    }
    const messages = at === null ? [] : known!.messages.slice();
    // What is shared from another turn stands where that turn had it, moved as the request says.
    for (const step of chain.reverse()) {
      const shared = step.shared?.units ?? 0;
      messages.length = shared;
      for (const [k, [from, by]] of step.moved.entries()) {
        const until = step.moved[k + 1]?.[0] ?? shared;
        for (let unit = from; unit < until; unit++) messages[unit]! += by;
      }
      for (const unit of step.units) messages.push(unit.message);
    }
    this.#positions = { history, messages };
    return messages.slice(0, count);
  }

  /** The prefix node of a history's whole prompt, made where it is new. */
  #path(history: RequestHistory): ForestNode {
    let node = history.shared === null
      ? this.root
      : prefixOf(this.turn(history.shared.turn).node, history.shared.units);
    for (const unit of history.units) node = node.child(unit);
    return node;
  }

  #end(entry: TurnEntry | FailedEntry, history: RequestHistory): void {
    entry.node.latestEnd = entry;
    this.entries.push(entry);
    const key = entry.root;
    let root = this.#roots.get(key);
    if (root === undefined) {
      root = {
        key,
        order: this.#roots.size,
        hasTools: history.hasTools,
        selected: false,
        appendedTo: false,
      };
      this.#roots.set(key, root);
    }
    if (history.selected === true) root.selected = true;
    if (history.follows !== null && history.follows.echo !== "missing") root.appendedTo = true;
    [root.selected, root.hasTools, root.appendedTo, true].forEach((holds, rank) => {
      const first = this.#firstRoots[rank];
      if (holds && (!first || root.order < first.order)) this.#firstRoots[rank] = root;
    });
  }
}

/** A request that left no turn, and when it came. */
export type HistoryEvent =
  /** Answered with the stored reply of a turn, after so many turns were committed. */
  | { readonly type: "replayed"; readonly turn: number; readonly after: number }
  /** Failed, after so many turns were committed. */
  | { readonly type: "failed"; readonly history: RequestHistory; readonly after: number };

/** The forest of a task from its stored turns, in order, and the events between them, in order. */
export function forestOf(
  turns: readonly { readonly parent: number | null; readonly history: TurnHistory }[],
  events: readonly HistoryEvent[],
): Forest {
  const forest = new Forest();
  let next = 0;
  for (let turn = 0; turn <= turns.length; turn++) {
    for (let event = events[next]; event !== undefined && (event.after <= turn || turn === turns.length);) {
      if (event.type === "replayed") forest.addReplay(event.turn);
      else forest.addFailed(event.history);
      event = events[++next];
    }
    const stored = turns[turn];
    if (stored !== undefined) forest.add(turn, stored.parent, stored.history);
  }
  return forest;
}

/** Names a root: requests of one root share their first unit, tools and settings. */
export function rootKey(
  firstUnit: string,
  request: { readonly toolsDigest: string; readonly settingsDigest: string },
): string {
  return `${firstUnit}.${renderKey(request)}`;
}
