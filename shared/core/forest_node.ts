/** The pieces a forest is made of: prefixes of prompts, and the turns whose prompts end there. */

import { digest } from "./digest.ts";
import { badness, type GradedEcho, gradeEcho } from "./echo_grade.ts";
import type { AssistantUnit } from "./message_signature.ts";
import type { OpenTurn, RequestHistory, StoredUnit, TurnHistory } from "./turn_history.ts";

/** A request that the forest knows of. Entries are numbered in the order they were added. */
export type ForestEntry = TurnEntry | FailedEntry | ReplayEntry;

/** What every entry has. */
export interface EntryBase {
  /** Its number, from 0. */
  readonly entry: number;
  /** Where its prompt ends. */
  readonly node: ForestNode;
  /** The root it belongs to: first unit, tools and settings. */
  readonly root: string;
  /** The latest entry of the same units when this one was added, or null. */
  readonly repeats: number | null;
}

/** A committed turn. */
export interface TurnEntry extends EntryBase {
  /** Tag. */
  readonly kind: "turn";
  /** The turn's number. */
  readonly turn: number;
  /** The turn whose series it extends. */
  readonly parent: number | null;
  /** Its place. */
  readonly history: TurnHistory;
}

/** A request that failed: it served nothing and left no turn behind. */
export interface FailedEntry extends EntryBase {
  /** Tag. */
  readonly kind: "failed";
  /** Its place. */
  readonly history: RequestHistory;
}

/** A request that was answered with the stored reply of an earlier turn. */
export interface ReplayEntry extends EntryBase {
  /** Tag. */
  readonly kind: "replay";
  /** The turn it was answered with. */
  readonly answers: TurnEntry;
}

/** The turn whose reply an entry was answered with; null where it failed. */
export function servedBy(entry: ForestEntry): TurnEntry | null {
  return entry.kind === "turn" ? entry : entry.kind === "replay" ? entry.answers : null;
}

/** The place of an entry's request. */
export function historyOf(entry: ForestEntry): RequestHistory {
  return entry.kind === "replay" ? entry.answers.history : entry.history;
}

/** A prefix of prompts: the units from the root to here. */
export class ForestNode {
  /** The last unit; null at the root. */
  readonly unit: StoredUnit | null;
  /** The prefix without it. */
  readonly parent: ForestNode | null;
  /** Number of units. */
  readonly depth: number;
  /** Prefixes one unit longer, by that unit's hash. */
  readonly children: Map<string, ForestNode> = new Map();
  /** The turn that was first to have this prefix; null while only failed requests have it. */
  owner: number | null = null;
  /** The latest turn that has this prefix. */
  latestTurn: number | null = null;
  /** The latest request whose prompt is exactly this. */
  latestEnd: ForestEntry | null = null;
  /** The turns whose prompt is exactly this, by what else is rendered. */
  readonly samples: Map<string, Samples> = new Map();
  /** Prompts one unit longer that end in an assistant turn, found by what that turn or the turn continued by a reply looks like. */
  #open: OpenIndex | null = null;

  /** The prefix of `parent` and one unit more. */
  constructor(parent: ForestNode | null, unit: StoredUnit | null) {
    this.parent = parent;
    this.unit = unit;
    this.depth = parent === null ? 0 : parent.depth + 1;
  }

  /** Prompts one unit longer that end in an assistant turn; null where there are none. */
  get open(): OpenIndex | null {
    return this.#open;
  }

  /** The prefix one unit longer, made where it is new. */
  child(unit: StoredUnit): ForestNode {
    let child = this.children.get(unit.hash);
    if (child === undefined) {
      child = new ForestNode(this, unit);
      this.children.set(unit.hash, child);
    }
    return child;
  }

  /** Notes that the prompt ending in `end`, one unit longer, ends in an assistant turn. */
  addOpen(end: ForestNode, turn: OpenTurn, history: TurnHistory): void {
    this.#open ??= { byMessages: new Map(), byUnit: new Map(), byText: new Map() };
    this.#open.byMessages.set(turn.messages, end);
    this.#open.byUnit.set(history.reply.unit, end);
    if (history.reply.hasText) this.#open.byText.set(history.reply.text, end);
  }
}

/** The prefix of so many units of a longer one. */
export function prefixOf(longer: ForestNode, depth: number): ForestNode {
  let node = longer;
  while (node.depth > depth && node.parent !== null) node = node.parent;
  return node;
}

/** Prompts that end in an assistant turn at one place, by the hash of that turn's messages, of the turn with its reply, and of the latter's text. */
export interface OpenIndex {
  /** By the messages the prompt ends in. */
  readonly byMessages: Map<string, ForestNode>;
  /** By the unit of those and the reply together. */
  readonly byUnit: Map<string, ForestNode>;
  /** By that unit's text. */
  readonly byText: Map<string, ForestNode>;
}

/** A sample and how well a unit echoes its reply. */
export interface BestEcho {
  /** The turn. */
  readonly sample: TurnEntry;
  /** How its reply came back. */
  readonly graded: GradedEcho;
}

/** The samples of one prompt under one render key. An echo that says the same is found without looking at the others. */
export class Samples {
  /** The latest sample. */
  latest: TurnEntry;
  /** The latest sample by what its reply says; by that and its call ids; by all that and how it is written, or what it reasoned. */
  readonly #byUnit = new Map<string, TurnEntry>();
  readonly #byIds = new Map<string, TurnEntry>();
  readonly #byForms = new Map<string, TurnEntry>();
  readonly #byReasoning = new Map<string, TurnEntry>();

  /** The samples of a prompt that has one. */
  constructor(first: TurnEntry) {
    this.latest = first;
    this.add(first);
  }

  /** Adds a sample. */
  add(sample: TurnEntry): void {
    this.latest = sample;
    const { reply } = sample.history;
    const ids = idsKey(reply.unit, reply.calls);
    this.#byUnit.set(reply.unit, sample);
    this.#byIds.set(ids, sample);
    this.#byForms.set(formsKey(ids, reply.forms), sample);
    if (reply.reasoning === null) return;
    for (const reasoning of new Set(Object.values(reply.reasoning))) {
      this.#byReasoning.set(reasoningKey(ids, reasoning), sample);
    }
  }

  /** The sample whose reply the unit echoes best; between equals the latest. `onCompare` is told of every reply that was looked at. */
  best(unit: AssistantUnit, onCompare: () => void): BestEcho {
    let best: BestEcho | null = null;
    for (const sample of this.#candidates(unit)) {
      onCompare();
      best = betterEcho(best, { sample, graded: gradeEcho(sample.history.reply, unit, sample.history.open) });
    }
    return best ??
      { sample: this.latest, graded: gradeEcho(this.latest.history.reply, unit, this.latest.history.open) };
  }

  /** Of replies that say what the unit says, one will do: of its ids, and of its reasoning or else written as it is, where there is one. */
  #candidates(unit: AssistantUnit): Iterable<TurnEntry> {
    const same = this.#byUnit.get(unit.hash);
    if (same === undefined) return this.#byIds.values();
    const { open } = same.history;
    const ids = idsKey(unit.hash, unit.calls.slice(open?.callCount ?? 0));
    const forms = formsKey(ids, unit.forms.slice(open?.formCount ?? 0));
    return [this.#reasoned(unit, ids, open) ?? this.#byForms.get(forms) ?? this.#byIds.get(ids) ?? same];
  }

  /** The sample whose reasoning stands in the unit, as served or trimmed; null where none is there. */
  #reasoned(unit: AssistantUnit, ids: string, open: OpenTurn | null): TurnEntry | null {
    if (this.#byReasoning.size === 0 || this.latest.repeats === null) return null;
    const reasoning = unit.messages.slice(open?.messageCount ?? 0).map((message) => message.reasoning ?? "").join("");
    if (reasoning === "") return null;
    return this.#byReasoning.get(reasoningKey(ids, digest(reasoning))) ??
      this.#byReasoning.get(reasoningKey(ids, digest(reasoning.trim()))) ?? null;
  }
}

/** The better of two; between equals the later. */
export function betterEcho(one: BestEcho | null, other: BestEcho): BestEcho {
  if (one === null) return other;
  const difference = badness(one.graded) - badness(other.graded);
  return difference < 0 || (difference === 0 && one.sample.entry > other.sample.entry) ? one : other;
}

function idsKey(unit: string, calls: readonly { readonly id: string }[]): string {
  return JSON.stringify([unit, ...calls.map((call) => call.id)]);
}

function reasoningKey(ids: string, reasoning: string): string {
  return `${ids}\n${reasoning}`;
}

function formsKey(ids: string, forms: readonly string[]): string {
  return [ids, ...forms].join("\n");
}
