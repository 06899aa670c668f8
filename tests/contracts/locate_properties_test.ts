/** Scaffolds at random: the fast way to locate a request agrees with the plain one, however things are written. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { Forest, forestOf, type HistoryEvent } from "../../shared/core/forest.ts";
import { historyOf, type TurnEntry } from "../../shared/core/forest_node.ts";
import { type KnownPrompt, locate, type Located } from "../../shared/core/locate.ts";
import { requestHistory, turnHistory } from "../../shared/core/record_history.ts";
import { repeatDigest } from "../../shared/core/repeat_digest.ts";
import { type RequestUnits, requestUnits } from "../../shared/core/request_units.ts";
import { leaves } from "../../shared/core/leaves.ts";
import { judge, verdictOnArrival } from "../../shared/core/verdict.ts";
import { type Earlier, plainLocate } from "./plain_locate.ts";
import { assistant, type MeantRequest, moves, randomOf, requestsOf, write } from "./scaffold_model.ts";

interface Sent {
  readonly lenient: Located;
  readonly strict: Located;
}

/** Sends one request: finds its place and adds it as it would come back from a store. */
function send(forest: Forest, request: MeantRequest, style: number): Sent {
  const units = requestUnits(write(request, style));
  const sent = {
    lenient: locate(forest, units, { echo: "lenient" }),
    strict: locate(forest, units, { echo: "strict" }),
  };
  if (request.reply === null) {
    forest.addFailed(JSON.parse(JSON.stringify(requestHistory(forest, units))));
  } else {
    const pad = request.units.at(-1)?.kind !== "assistant";
    const reply = assistant(request.reply, -1, { random: randomOf(style), pad });
    forest.add(
      forest.turns,
      sent.lenient.extend?.turn ?? null,
      JSON.parse(JSON.stringify(turnHistory(forest, units, reply))),
    );
  }
  const entry = forest.entries.at(-1)!;
  assert.deepEqual(
    forest.messagesOf(historyOf(entry), units.units.length),
    units.units.map((unit) => unit.message),
    "where the units stand comes back from the store",
  );
  return sent;
}

function check(found: Located, earlier: readonly Earlier[], request: MeantRequest, options: {
  readonly echo: "lenient" | "strict";
  readonly plain: boolean;
}): void {
  const wanted = plainLocate(earlier, request, options.echo);
  const isRoot = found.relation === "root" || found.relation === "side_root";
  if (isRoot) {
    // What shares leading units with side calls only is no fork.
    assert.ok(wanted.relation === "none" || wanted.relation === "fork", wanted.relation);
  } else {
    assert.equal(found.relation, wanted.relation);
    assert.deepEqual([plainGrade(found.echo), found.also], [wanted.echo, wanted.also]);
    if (options.plain) assert.equal(found.relatedTo, wanted.turns.at(-1));
    else assert.ok(wanted.turns.includes(found.relatedTo), `${found.relatedTo} is none of ${wanted.turns}`);
  }
  assert.equal(plainGrade(found.follows?.echo ?? null), wanted.follows?.echo ?? null);
  if (found.follows !== null) assert.ok(wanted.follows?.turns.includes(found.follows.turn));
  assert.equal(found.extend === null, wanted.extend === null);
  if (found.extend === null || wanted.extend === null) return;
  if (options.plain) assert.equal(found.extend.turn, wanted.extend.turns.at(-1));
  else assert.ok(wanted.extend.turns.includes(found.extend.turn));
  const after = write({ ...request, units: request.units }, 0).messages.length -
    request.units.slice(0, wanted.extend.after).reduce(
      (sum, unit) => sum + (unit.kind === "assistant" ? unit.pieces.length : 1),
      0,
    );
  assert.equal(found.extend.append.length, after);
}

function plainGrade(echo: string | null): string | null {
  return echo === "exact" || echo === "representation" ? "same" : echo;
}

function run(requests: readonly MeantRequest[], styles: readonly number[]): { forest: Forest; sent: Sent[] } {
  const forest = new Forest();
  const earlier: Earlier[] = [];
  const sent = requests.map((request, k) => {
    const style = styles[k % Math.max(1, styles.length)] ?? 0;
    const turn = request.reply === null ? null : forest.turns;
    const places = send(forest, request, style);
    const plain = styles.every((one) => one === 0);
    check(places.lenient, earlier, request, { echo: "lenient", plain });
    check(places.strict, earlier, request, { echo: "strict", plain });
    earlier.push({ request, turn });
    return places;
  });
  return { forest, sent };
}

const RUNS = { numRuns: 300 };

Deno.test("locate agrees with comparing every stored request, written plainly", () => {
  fc.assert(fc.property(moves, (made) => void run(requestsOf(made), [0])), RUNS);
});

Deno.test("locate agrees with comparing every stored request, however requests are written", () => {
  const styles = fc.array(fc.integer({ min: 1 }), { minLength: 1, maxLength: 8 });
  fc.assert(fc.property(moves, styles, (made, some) => void run(requestsOf(made), some)), RUNS);
});

Deno.test("requestUnits gives equal units and an equal repeat digest however a request is written", () => {
  fc.assert(
    fc.property(moves, fc.integer({ min: 1 }), (made, style) => {
      for (const request of requestsOf(made)) {
        const plain = requestUnits(write(request, 0));
        const styled = requestUnits(write(request, style));
        assert.deepEqual(styled.units.map((unit) => unit.hash), plain.units.map((unit) => unit.hash));
        assert.equal(repeatDigest(styled, { temperature: 1 }), repeatDigest(plain, { temperature: 1.0 }));
        assert.notEqual(repeatDigest(styled, { temperature: 1 }), repeatDigest(styled, {}));
      }
    }),
    RUNS,
  );
});

Deno.test("a request that begins like a known one is placed as one that is read from its beginning", () => {
  fc.assert(
    fc.property(moves, fc.array(fc.nat(3), { minLength: 1, maxLength: 8 }), (made, styles) => {
      const forest = new Forest();
      const earlier: { request: RequestUnits; prompt: KnownPrompt }[] = [];
      for (const [k, request] of requestsOf(made).entries()) {
        const style = styles[k % styles.length]!;
        const plain = requestUnits(write(request, style));
        for (const known of earlier.slice(-4)) {
          const again = requestUnits(write(request, style), { known: known.request });
          assert.deepEqual(again, plain);
          for (const echo of ["lenient", "strict"] as const) {
            const { comparisons: _counted, ...found } = locate(forest, again, { echo, known: known.prompt });
            const { comparisons: _all, ...wanted } = locate(forest, plain, { echo });
            assert.deepEqual(found, wanted);
          }
        }
        send(forest, request, style);
        earlier.push({ request: plain, prompt: { forest, units: plain.units, node: forest.entries.at(-1)!.node } });
      }
    }),
    RUNS,
  );
});

Deno.test("Forest places two conversations alike however their requests interleave", () => {
  fc.assert(
    fc.property(moves, moves, fc.array(fc.boolean(), { maxLength: 40 }), (one, two, order) => {
      const first = requestsOf(one);
      const second = requestsOf(two).map((request): MeantRequest => ({
        ...request,
        units: request.units.map((unit, k) =>
          k === 0 ? { kind: "system", text: `other ${JSON.stringify(unit)}` } : unit
        ),
      }));
      assert.deepEqual(places(first, second, order), places(first, second, order.map((turn) => !turn)));
    }),
    RUNS,
  );
});

/** The places of both conversations' requests, with turns named by conversation and number. */
function places(first: readonly MeantRequest[], second: readonly MeantRequest[], order: readonly boolean[]): unknown {
  const forest = new Forest();
  const names: string[] = [];
  const queues = [
    first.map((request, k) => ({ request, name: `a${k}` })),
    second.map((request, k) => ({ request, name: `b${k}` })),
  ];
  const found = new Map<string, unknown>();
  for (let k = 0; queues.some((queue) => queue.length > 0); k++) {
    const queue = queues[order[k] === true ? 0 : 1]!;
    const next = (queue.length > 0 ? queue : queues.find((other) => other.length > 0)!).shift()!;
    const { lenient } = send(forest, next.request, 0);
    if (next.request.reply !== null) names.push(next.name);
    const isRoot = lenient.relation === "root" || lenient.relation === "side_root" || lenient.relation === "fork";
    found.set(next.name, {
      relation: isRoot ? "apart" : lenient.relation,
      related: isRoot || lenient.relatedTo === null ? null : names[lenient.relatedTo],
      echo: lenient.echo,
      extend: lenient.extend === null ? null : [names[lenient.extend.turn], lenient.extend.append.length],
    });
  }
  return [...found].sort(([a], [b]) => a < b ? -1 : 1);
}

Deno.test("judge gives every turn a role and every leaf a row, and a stored forest is judged alike", () => {
  fc.assert(
    fc.property(
      moves,
      fc.constantFrom("append_only", "branch"),
      fc.constantFrom("lenient", "strict"),
      (made, history, echo) => {
        const { forest } = run(requestsOf(made), [0]);
        const policy = { history, echo, final: true } as const;
        const judgement = judge(forest, policy);
        assert.deepEqual(judgement.turns.map(({ turn }) => turn), Array.from({ length: forest.turns }, (_, k) => k));
        const rows = leaves(forest, judgement);
        assert.deepEqual(new Set(rows.flatMap(({ path }) => path)).size, forest.turns, "every turn is in a row");
        assert.equal(new Set(rows.map(({ turn }) => turn)).size, rows.length, "no row twice");
        const last = judgement.mainLine.at(-1);
        if (last !== undefined) assert.equal(rows[0]!.turn, last, "the main line comes first");
        assert.deepEqual([...judgement.mainLine].sort((a, b) => a - b), judgement.mainLine);
        if (history === "branch") assert.deepEqual(judgement.capture, { valid: true, reason: null });
        assert.deepEqual(judge(rebuilt(forest), policy), judgement);
      },
    ),
    RUNS,
  );
});

Deno.test("verdictOnArrival of the latest request is its verdict while nothing later is known", () => {
  fc.assert(
    fc.property(moves, (made) => {
      const forest = new Forest();
      for (const request of requestsOf(made)) {
        send(forest, request, 0);
        const latest = judge(forest, { history: "append_only", echo: "lenient", final: false }).decisions.at(-1)!;
        assert.deepEqual(verdictOnArrival(forest, latest.entry), {
          lenient: latest.verdict,
          strict: latest.strictVerdict,
        });
      }
    }),
    { numRuns: 100 },
  );
});

/** The same forest from what a store would hold. */
function rebuilt(forest: Forest): Forest {
  const turns: TurnEntry[] = [];
  const events: HistoryEvent[] = [];
  for (const entry of forest.entries) {
    if (entry.kind === "turn") turns.push(entry);
    else if (entry.kind === "failed") events.push({ type: "failed", history: entry.history, after: turns.length });
    else events.push({ type: "replayed", turn: entry.answers.turn, after: turns.length });
  }
  return forestOf(JSON.parse(JSON.stringify(turns.map(({ parent, history }) => ({ parent, history })))), events);
}
