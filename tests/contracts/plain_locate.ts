/** The plain, slow way to locate a request: every stored request is compared with it, unit by unit, as meant. */

import type { MeantCall, MeantPiece, MeantRequest, MeantUnit } from "./scaffold_model.ts";

/** A request that came earlier; `turn` is null where it failed. */
export interface Earlier {
  readonly request: MeantRequest;
  readonly turn: number | null;
}

/** What must be found. Where several samples of a prompt will do equally, `turns` holds them all, the latest last. */
export interface PlainPlace {
  readonly relation: "append" | "branch" | "fork" | "retry" | "none";
  readonly turns: readonly (number | null)[];
  readonly echo: string | null;
  readonly also: readonly string[];
  /** The longest prompt of the same tools that is repeated, and its echo. */
  readonly follows: { readonly turns: readonly number[]; readonly echo: string } | null;
  readonly extend: { readonly turns: readonly number[]; readonly after: number } | null;
}

/** Finds the place of a request. `exact` and `representation` are both `same` here. */
export function plainLocate(
  earlier: readonly Earlier[],
  request: MeantRequest,
  echo: "lenient" | "strict",
): PlainPlace {
  const places = placesOf(earlier, request);
  const ofTools = places.flatMap((place) => {
    const found = best(place.samples.filter((one) => one.request.tools === request.tools), place);
    return found === null ? [] : [found];
  });
  const follows = ofTools[0];
  const extend = ofTools.find(({ grade }) => grade !== null && (echo === "lenient" || grade.isSame));
  const own = {
    follows: follows === undefined
      ? null
      : { turns: follows.turns, echo: follows.grade === null ? "missing" : follows.grade.found[0] ?? "same" },
    extend: extend === undefined ? null : { turns: extend.turns, after: extend.after },
  };
  const repeated = earlier.filter((one) =>
    samePrefix(one.request, request, request.units.length) && one.request.units.length === request.units.length
  );
  if (repeated.length > 0) {
    return { ...own, relation: "retry", turns: [repeated.at(-1)!.turn], echo: null, also: [] };
  }
  const first = places[0];
  if (first !== undefined) {
    const { turns, grade } = best(first.samples, first)!;
    const [found = "same", ...also] = grade === null ? ["missing"] : grade.found;
    return { ...own, relation: grade === null ? "branch" : "append", turns, echo: found, also };
  }
  const most = Math.max(0, ...earlier.map((one) => one.turn === null ? 0 : sharedUnits(one.request, request)));
  const forked = earlier.filter((one) => one.turn !== null && sharedUnits(one.request, request) === most);
  if (most === 0) return { ...own, relation: "none", turns: [], echo: null, also: [] };
  return { ...own, relation: "fork", turns: [forked.at(-1)!.turn], echo: null, also: [] };
}

/** Samples of one prompt that the request repeats and goes beyond, and the unit in the place of the reply. */
interface Place {
  readonly samples: readonly Earlier[];
  readonly unit: MeantUnit;
  readonly open: readonly MeantPiece[];
  /** Index of the unit after the reply's place. */
  readonly after: number;
}

interface Grade {
  readonly found: readonly string[];
  readonly isSame: boolean;
  readonly badness: number;
}

/** In order of preference: the longest prompt, one that is continued before one that is whole, the longest start of the turn, the latest. */
function placesOf(earlier: readonly Earlier[], request: MeantRequest): Place[] {
  const ranked: { place: Place; rank: number[] }[] = [];
  const turns = earlier.filter((one) => one.turn !== null);
  for (const one of turns) {
    const { units } = one.request;
    const samples = turns.filter((other) =>
      other.request.units.length === units.length && samePrefix(other.request, one.request, units.length)
    );
    if (samples[0] !== one) continue;
    const next = request.units[units.length];
    if (next !== undefined && samePrefix(one.request, request, units.length)) {
      ranked.push({ place: { samples, unit: next, open: [], after: units.length + 1 }, rank: [units.length, 0, 0, 0] });
    }
    const last = units.at(-1);
    const unit = request.units[units.length - 1];
    if (
      last?.kind !== "assistant" || unit?.kind !== "assistant" || !samePrefix(one.request, request, units.length - 1)
    ) continue;
    if (unitKey(request.units, units.length - 1) === unitKey(units, units.length - 1)) continue;
    const starts = last.pieces.length < unit.pieces.length &&
      last.pieces.every((piece, k) => pieceKey([piece]) === pieceKey([unit.pieces[k]!]));
    const saying = samples.filter((sample) =>
      pieceKey([...last.pieces, sample.request.reply!]) === pieceKey(unit.pieces)
    );
    const reading = samples.filter((sample) =>
      sample.request.reply!.text !== "" && textOf([...last.pieces, sample.request.reply!]) === textOf(unit.pieces)
    );
    if (!starts && saying.length === 0 && reading.length === 0) continue;
    const start = saying.length > 0 ? 1000 : starts ? last.pieces.length : 0;
    // Different starts of one turn may be continued to the same: the latest that was.
    const latest = (saying.length > 0 ? saying : reading).at(-1)?.turn ?? 0;
    const place = { samples, unit, open: last.pieces, after: units.length };
    ranked.push({ place, rank: [units.length, 1, start, latest] });
  }
  ranked.sort((a, b) => a.rank.map((own, k) => b.rank[k]! - own).find((difference) => difference !== 0) ?? 0);
  return ranked.map(({ place }) => place);
}

function best(
  samples: readonly Earlier[],
  place: Place,
): { turns: number[]; grade: Grade | null; after: number } | null {
  if (samples.length === 0) return null;
  const { unit, open, after } = place;
  if (unit.kind !== "assistant") return { turns: [samples.at(-1)!.turn!], grade: null, after };
  const graded = samples.map((sample) => ({ sample, grade: gradeOf(open, sample.request.reply!, unit.pieces) }));
  const least = Math.min(...graded.map(({ grade }) => grade.badness));
  const kept = graded.filter(({ grade }) => grade.badness === least);
  return { turns: kept.map(({ sample }) => sample.turn!), grade: kept.at(-1)!.grade, after };
}

/** Calls, arguments, text, ids: what of a reply did not come back as it was. */
function gradeOf(open: readonly MeantPiece[], reply: MeantPiece, pieces: readonly MeantPiece[]): Grade {
  const skip = open.flatMap((piece) => piece.calls).length;
  const calls = pieces.flatMap((piece) => piece.calls).slice(skip);
  const found: string[] = [];
  const same = (a: MeantCall, b: MeantCall) => a.name === b.name && a.value === b.value;
  const kept = subsequence(calls, reply.calls, (a, b) => same(a, b) && a.id === b.id);
  const asServed = kept || subsequence(calls, reply.calls, same);
  if (calls.length < reply.calls.length) found.push("calls_dropped");
  if (!asServed) found.push("args_rewritten");
  const text = textOf(pieces);
  if (text !== textOf([...open, reply])) {
    found.push(reply.text !== "" && text === textOf(open) ? "text_dropped" : "text_changed");
  }
  const [fewer, more] = calls.length < reply.calls.length ? [calls, reply.calls] : [reply.calls, calls];
  const idsKept = kept || (!asServed && subsequence(fewer, more, (a, b) => a.id === b.id));
  if (!idsKept) found.push("ids_rewritten");
  const weights: { [name: string]: number } = {
    ids_rewritten: 1,
    text_dropped: 10,
    calls_dropped: 10,
    args_rewritten: 11,
    text_changed: 11,
  };
  const isSame = found.length === 0 || (found.length === 1 && found[0] === "ids_rewritten");
  return { found, isSame, badness: found.reduce((sum, name) => sum + weights[name]!, 0) };
}

function subsequence(
  some: readonly MeantCall[],
  all: readonly MeantCall[],
  equal: (a: MeantCall, b: MeantCall) => boolean,
): boolean {
  const [first, ...rest] = some;
  if (first === undefined) return true;
  const at = all.findIndex((candidate) => equal(candidate, first));
  return at >= 0 && subsequence(rest, all.slice(at + 1), equal);
}

function sharedUnits(one: MeantRequest, other: MeantRequest): number {
  let shared = 0;
  while (
    shared < Math.min(one.units.length, other.units.length) &&
    unitKey(one.units, shared) === unitKey(other.units, shared)
  ) shared++;
  return shared;
}

function samePrefix(one: MeantRequest, other: MeantRequest, length: number): boolean {
  return one.units.length >= length && sharedUnits(one, other) >= length;
}

/** What of a unit is compared. */
function unitKey(units: readonly MeantUnit[], at: number): string {
  const unit = units[at]!;
  switch (unit.kind) {
    case "system":
    case "user":
      return JSON.stringify([unit.kind, unit.text]);
    case "assistant":
      return JSON.stringify(["assistant", pieceKey(unit.pieces)]);
    case "tool":
      return JSON.stringify(["tool", answered(units, at, unit.id), unit.text]);
  }
}

/** The call a result answers: which assistant turn, which of its calls; the id where no call has it. */
function answered(units: readonly MeantUnit[], at: number, id: string): unknown {
  for (let before = at - 1; before >= 0; before--) {
    const unit = units[before]!;
    if (unit.kind !== "assistant") continue;
    const calls = unit.pieces.flatMap((piece) => piece.calls);
    const place = calls.findIndex((call) => call.id === id);
    if (place >= 0) {
      return [
        units.slice(0, before).filter((one) => one.kind === "assistant").length,
        place,
        timesAnswered(units, at, before, id),
      ];
    }
  }
  return id;
}

function timesAnswered(units: readonly MeantUnit[], at: number, from: number, id: string): number {
  return units.slice(from, at).filter((unit) => unit.kind === "tool" && unit.id === id).length;
}

function pieceKey(pieces: readonly MeantPiece[]): string {
  return JSON.stringify([
    textOf(pieces),
    pieces.flatMap((piece) => piece.calls.map((call) => [call.name, call.value])),
  ]);
}

function textOf(pieces: readonly MeantPiece[]): string {
  return pieces.map((piece) => piece.text).join("").trim();
}
