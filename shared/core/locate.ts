/**
 * Where a request belongs: which earlier request it goes on from, how the reply came back, and which turn's series it
 * extends. It decides the path, never whether a request is served. The cost is the request's own length.
 */

import { digest } from "./digest.ts";
import { type Difference, differenceOfEcho, differenceOfUnits } from "./difference.ts";
import { type EchoGrade, type GradedEcho, isAccepted, reasoningFate } from "./echo_grade.ts";
import { type Forest, rootKey } from "./forest.ts";
import {
  type BestEcho,
  betterEcho,
  type ForestEntry,
  type ForestNode,
  prefixOf,
  type TurnEntry,
} from "./forest_node.ts";
import type { Message } from "./message.ts";
import { type AssistantUnit, messageChain, type Unit } from "./message_signature.ts";
import { renderKey, type RequestUnits, unitsInCommon } from "./request_units.ts";
import type { Link, Relation } from "./turn_history.ts";

/** The place of a request among what is known. */
export interface Located {
  /** How it relates to earlier requests. `root` and `side_root` are provisional: the main line is known at the end. */
  readonly relation: Relation;
  /** The turn the relation speaks of; null for roots, and where the related request made no turn. */
  readonly relatedTo: number | null;
  /** How the related turn's reply came back; null where the relation has no reply in it. */
  readonly echo: EchoGrade | null;
  /** What else changed in it. */
  readonly also: Link["also"];
  /** What became of its reasoning. */
  readonly reasoning: Link["reasoning"];
  /** Whether the tool list differs from the related turn's. */
  readonly toolsChanged: boolean;
  /** Where it differs from the related turn; null for roots, retries and echoes that say the same. */
  readonly at: Difference | null;
  /** The rule that decided, in words. */
  readonly rule: string;
  /** The longest earlier prompt that it repeats and goes beyond, and how the reply to it came back. */
  readonly related: Link | null;
  /** The longest one of the same tools and settings. */
  readonly follows: Link | null;
  /** The turn whose series it extends, and the messages to append after it; null: its prompt is rendered whole. */
  readonly extend: { readonly turn: number; readonly append: readonly Message[] } | null;
  /** Leading units that a turn is known to have. */
  readonly sharedUnits: number;
  /** The turn that was first to have them; null where there are none. */
  readonly sharedOwner: number | null;
  /** Prefixes and replies that were looked at. */
  readonly comparisons: number;
  /** Entries of the forest when it was looked up. */
  readonly entries: number;
}

/** An earlier request of the forest and where it ends there. */
export interface KnownPrompt {
  /** The forest: in another one it says nothing. */
  readonly forest: Forest;
  /** Its units. */
  readonly units: readonly Unit[];
  /** The prefix of all of them. */
  readonly node: ForestNode;
}

/**
 * Finds the place of a request. Under `strict` only an echo that says the same is taken for one. `known`: a request
 * whose units this one may begin with; it costs less then and is the same.
 */
export function locate(
  forest: Forest,
  request: RequestUnits,
  options: { echo: "lenient" | "strict"; known?: KnownPrompt | null },
): Located {
  const walk = new Walk(forest, request, options.known ?? null);
  const key = renderKey(request);
  let related: Candidate | null = null;
  let follows: Candidate | null = null;
  let extend: Candidate | null = null;
  for (const found of walk.candidates(key)) {
    related ??= found;
    if (found.sameKey) follows ??= found;
    if (found.sameKey && found.echo !== null && isAccepted(found.echo.echo, options.echo)) {
      extend = found;
      break;
    }
  }
  const repeated = walk.repeated();
  const shared = {
    related: related === null ? null : linkOf(related),
    follows: follows === null ? null : linkOf(follows),
    extend: extend === null ? null : { turn: extend.sample.turn, append: request.messages.slice(extend.end) },
    sharedUnits: walk.shared,
    sharedOwner: walk.shared === 0 ? null : walk.sharedNode.owner,
    comparisons: walk.comparisons,
    entries: forest.entries.length,
  };
  if (repeated !== null) {
    const sample = repeated.kind === "replay" ? repeated.answers : repeated;
    return {
      ...shared,
      ...none(),
      relation: "retry",
      relatedTo: sample.kind === "turn" ? sample.turn : null,
      toolsChanged: sample.history.toolsDigest !== request.toolsDigest,
      rule: "the same units as an earlier request",
    };
  }
  if (related !== null) return { ...shared, ...goesOn(request, related) };
  return { ...shared, ...apart(forest, request, walk) };
}

/** A whole prompt that the request repeats and goes beyond. */
interface Candidate {
  readonly sample: TurnEntry;
  readonly sameKey: boolean;
  /** What stands in the reply's place, graded; null where no assistant turn does. */
  readonly echo: GradedEcho | null;
  readonly unit: AssistantUnit | null;
  /** Index in the messages after the echo. */
  readonly end: number;
}

/** The request's units, walked down the tree. */
class Walk {
  /** Number of leading units that a turn has. */
  readonly shared: number;
  /** The deepest prefix that a turn has. */
  readonly sharedNode: ForestNode;
  comparisons: number;
  readonly #request: RequestUnits;
  /** The longest prefix found; it may be known to failed requests only. */
  readonly #deepest: ForestNode;

  constructor(forest: Forest, request: RequestUnits, known: KnownPrompt | null) {
    this.#request = request;
    const { units } = request;
    let node = known?.forest === forest ? prefixOf(known.node, unitsInCommon(units, known.units)) : forest.root;
    while (node.depth < units.length) {
      const next = node.children.get(units[node.depth]!.hash);
      if (next === undefined) break;
      node = next;
    }
    this.#deepest = node;
    this.comparisons = Math.min(node.depth + 1, units.length);
    // Every prefix of what a turn has is a turn's, too.
    while (node.owner === null && node.parent !== null) node = node.parent;
    this.sharedNode = node;
    this.shared = node.depth;
  }

  /** The latest request of the same units, failed ones included. */
  repeated(): ForestEntry | null {
    return this.#deepest.depth === this.#request.units.length ? this.#deepest.latestEnd : null;
  }

  /** Whole prompts that the request goes beyond: the longest first, echoed before not echoed, of each render key the best echoed. */
  *candidates(key: string): Generator<Candidate> {
    const { units } = this.#request;
    let node = this.sharedNode;
    for (let depth = Math.min(this.shared + 1, units.length); depth > 0; depth--) {
      const last = units[depth - 1]!;
      node = prefixOf(node, depth);
      if (last.kind === "assistant") {
        const before = prefixOf(node, depth - 1);
        for (const continued of this.#continued(before, last)) yield* this.#echoed(continued, last, key);
      }
      if (depth > this.shared || depth === units.length) continue;
      const next = units[depth]!;
      if (next.kind === "assistant") yield* this.#echoed(node, next, key);
      else yield* this.#unanswered(node, last.end, key);
    }
  }

  /** Prompts that end in the first part of an assistant turn: the one it continues with its reply, then the longest. */
  #continued(before: ForestNode, unit: AssistantUnit): Set<ForestNode> {
    const found = new Set<ForestNode>();
    const { open } = before;
    if (open === null) return found;
    const own = before.children.get(unit.hash);
    const note = (node: ForestNode | undefined) => {
      this.comparisons++;
      if (node !== undefined && node !== own) found.add(node);
    };
    note(open.byUnit.get(unit.hash));
    const chain = messageChain(unit);
    for (let count = chain.length - 1; count > 0; count--) note(open.byMessages.get(chain[count - 1]!));
    note(open.byText.get(digest(unit.text)));
    return found;
  }

  *#echoed(node: ForestNode, unit: AssistantUnit, key: string): Generator<Candidate> {
    const onCompare = () => this.comparisons++;
    let best: BestEcho | null = null;
    for (const samples of node.samples.values()) best = betterEcho(best, samples.best(unit, onCompare));
    if (best === null) return;
    const candidate = ({ sample, graded }: BestEcho): Candidate => ({
      sample,
      sameKey: renderKey(sample.history) === key,
      echo: graded,
      unit,
      end: unit.end,
    });
    const first = candidate(best);
    yield first;
    if (first.sameKey) return;
    const own = node.samples.get(key);
    if (own !== undefined) yield candidate(own.best(unit, onCompare));
  }

  *#unanswered(node: ForestNode, end: number, key: string): Generator<Candidate> {
    let latest: TurnEntry | null = null;
    for (const { latest: sample } of node.samples.values()) {
      this.comparisons++;
      if (latest === null || sample.entry > latest.entry) latest = sample;
    }
    if (latest === null) return;
    const candidate = (sample: TurnEntry): Candidate => ({
      sample,
      sameKey: renderKey(sample.history) === key,
      echo: null,
      unit: null,
      end,
    });
    const first = candidate(latest);
    yield first;
    if (first.sameKey) return;
    const own = node.samples.get(key);
    if (own !== undefined) yield candidate(own.latest);
  }
}

function linkOf(candidate: Candidate): Link {
  const { sample, echo, unit } = candidate;
  return {
    turn: sample.turn,
    echo: echo?.echo ?? "missing",
    also: echo?.also ?? [],
    reasoning: unit === null ? null : reasoningFate(sample.history.reply, unit, sample.history.open),
  };
}

type Place = Omit<
  Located,
  "related" | "follows" | "extend" | "sharedUnits" | "sharedOwner" | "comparisons" | "entries"
>;

function none(): Pick<Place, "echo" | "also" | "reasoning" | "at"> {
  return { echo: null, also: [], reasoning: null, at: null };
}

/** The place of a request that repeats a whole prompt and goes beyond it. */
function goesOn(request: RequestUnits, related: Candidate): Place {
  const { sample, unit } = related;
  const { echo, also, reasoning } = linkOf(related);
  const depth = sample.node.depth;
  return {
    relation: unit === null ? "branch" : "append",
    relatedTo: sample.turn,
    echo,
    also,
    reasoning,
    toolsChanged: sample.history.toolsDigest !== request.toolsDigest,
    at: unit === null
      ? differenceOfEcho(sample.history, "missing", { unit: depth, received: request.units[depth]! })
      : differenceOfEcho(sample.history, echo, { unit: request.units.indexOf(unit), received: unit }),
    rule: unit === null
      ? "the longest known prompt that is a whole prefix, with no assistant turn where its reply belongs"
      : sample.history.open === null
      ? "the longest known prompt that is a whole prefix, then an assistant turn where its reply belongs"
      : "the longest known prompt that is a whole prefix; it ended in an assistant turn, which the reply continues",
  };
}

/** The place of a request that repeats no whole prompt. */
function apart(forest: Forest, request: RequestUnits, walk: Walk): Place {
  const first = request.units[0]?.hash ?? "";
  const key = rootKey(first, request);
  const main = forest.mainRoot({ key, hasTools: request.hasTools, selected: request.selected === true });
  const turn = walk.sharedNode.latestTurn;
  if (walk.shared === 0 || turn === null || !main.startsWith(`${first}.`)) {
    return {
      ...none(),
      relation: main === key ? "root" : "side_root",
      relatedTo: null,
      toolsChanged: false,
      rule: walk.shared === 0
        ? "no leading unit in common with an earlier turn"
        : "no leading unit in common with the main line",
    };
  }
  const { node, history } = forest.turn(turn);
  return {
    ...none(),
    relation: "fork",
    relatedTo: turn,
    toolsChanged: history.toolsDigest !== request.toolsDigest,
    at: differenceOfUnits(prefixOf(node, walk.shared + 1).unit, {
      unit: walk.shared,
      received: request.units[walk.shared] ?? null,
      entries: request.entries,
    }),
    rule: "leading units in common, but no known prompt is a whole prefix",
  };
}
