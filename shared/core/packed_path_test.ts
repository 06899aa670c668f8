import assert from "node:assert/strict";
import fc from "fast-check";
import { makeTurn } from "../../tests/contracts/store_fixtures.ts";
import { VerbatimError } from "./errors.ts";
import { InconsistentSeries, packPath, tryPackPath } from "./packed_path.ts";
import type { Turn, TurnRecord } from "./turn.ts";

interface Shape {
  readonly observation: number[];
  readonly sampled: (readonly [id: number, logprob: number])[];
  readonly version: string | null;
}

const id = fc.nat(0xffffffff);
const shape: fc.Arbitrary<Shape> = fc.record({
  observation: fc.array(id, { maxLength: 5 }),
  sampled: fc.array(fc.tuple(id, fc.double({ max: 0, noNaN: true, noDefaultInfinity: true })), { maxLength: 5 }),
  version: fc.constantFrom("1", "2", null),
});
const shapes = fc.array(shape, { minLength: 1, maxLength: 8 });

/** Turns 0, 1, ... of one path, each what its record says. */
function pathOf(list: readonly Shape[]): Turn[] {
  let tokens = 0;
  return list.map(({ observation, sampled, version }, number) => {
    const turn = makeTurn(number, {
      observation: Uint32Array.from(observation),
      completion: Uint32Array.from(sampled, ([sampledId]) => sampledId),
      logprobs: Float64Array.from(sampled, ([, logprob]) => logprob),
    });
    tokens += observation.length;
    const promptTokens = tokens;
    tokens += sampled.length;
    const weightVersions = sampled.length === 0 ? [] : [{ version, start: 0, end: sampled.length, exact: true }];
    return { ...turn, record: { ...turn.record, promptTokens, weightVersions } };
  });
}

Deno.test("packPath puts the turns of a path one after the other, position by position", () => {
  fc.assert(fc.property(shapes, (list) => {
    const turns = pathOf(list);
    const packed = packPath(turns);
    const response: number[] = [];
    const logprobs: number[] = [];
    const mask: number[] = [];
    const spans: [number, number][] = [];
    const versionAt = new Map<number, string | null>();
    list.forEach(({ observation, sampled, version }, number) => {
      for (const observed of number === 0 ? [] : observation) {
        response.push(observed);
        logprobs.push(0);
        mask.push(0);
      }
      spans.push([response.length, response.length + sampled.length]);
      for (const [sampledId, logprob] of sampled) {
        versionAt.set(response.length, version);
        response.push(sampledId);
        logprobs.push(logprob);
        mask.push(1);
      }
    });
    assert.deepEqual([...packed.prompt], list[0]!.observation);
    assert.deepEqual([...packed.response], response);
    assert.deepEqual(packed.logprobs, Float64Array.from(logprobs));
    assert.deepEqual([...packed.sampledMask], mask);
    assert.deepEqual(packed.spans.map(({ start, end }) => [start, end]), spans);
    assert.deepEqual(packed.spans.map(({ turn }) => turn), turns);
    assertSegments(packed.weightVersions, versionAt);
  }));
});

Deno.test("packPath keeps what the teacher decided apart from what the policy sampled", () => {
  const actor = fc.constantFrom<TurnRecord["actor"]>("policy", "teacher");
  fc.assert(fc.property(fc.array(fc.tuple(shape, actor), { minLength: 1, maxLength: 8 }), (list) => {
    const whole = pathOf(list.map(([one]) => one));
    const turns = whole.map((turn, k): Turn => {
      if (list[k]![1] === "policy") return turn;
      const logprobs = new Float32Array(turn.completion.length);
      return { ...turn, logprobs, record: { ...turn.record, actor: "teacher", weightVersions: [] } };
    });
    const packed = packPath(turns);
    assert.deepEqual([...packed.response], [...packPath(whole).response]);
    for (const { turn: { record }, start, end } of packed.spans) {
      const ones = Array.from({ length: end - start }, () => 1);
      const zeros = ones.map(() => 0);
      const [own, other] = record.actor === "policy"
        ? [packed.sampledMask, packed.teacherMask]
        : [packed.teacherMask, packed.sampledMask];
      assert.deepEqual([[...own.subarray(start, end)], [...other.subarray(start, end)]], [ones, zeros]);
      if (record.actor === "teacher") assert.ok(packed.logprobs.subarray(start, end).every((value) => value === 0));
    }
    const marked = packed.sampledMask.reduce((sum, bit, k) => sum + bit + packed.teacherMask[k]!, 0);
    assert.equal(marked, turns.reduce((sum, turn) => sum + turn.completion.length, 0), "nothing else is marked");
  }));
});

Deno.test("packPath refuses a teacher's turn that weights of the policy claim", () => {
  const [turn] = pathOf([{ observation: [1], sampled: [[2, 0]], version: "1" }]);
  const claimed: Turn = { ...turn!, record: { ...turn!.record, actor: "teacher" } };
  assert.ok(tryPackPath([claimed]) instanceof InconsistentSeries);
});

/** Every sampled position lies in one segment, its own version's; segments are in order, and neighbours differ. */
function assertSegments(segments: TurnRecord["weightVersions"], versionAt: ReadonlyMap<number, string | null>): void {
  for (const [position, version] of versionAt) {
    const holding = segments.filter(({ start, end }) => start <= position && position < end);
    assert.deepEqual(holding.map((segment) => segment.version), [version]);
  }
  segments.forEach(({ version, start, end }, index) => {
    assert.ok(start < end && versionAt.has(start) && versionAt.has(end - 1));
    const next = segments[index + 1];
    if (next !== undefined) assert.ok(end <= next.start && version !== next.version);
  });
}

Deno.test("packPath keeps exact and inexact segments of one version apart", () => {
  const turn = pathOf([{ observation: [1], sampled: [[2, -1], [3, -1], [4, -1]], version: "a" }])[0]!;
  const weightVersions = [
    { version: "a", start: 0, end: 1, exact: true },
    { version: "a", start: 1, end: 2, exact: false },
    { version: "b", start: 2, end: 3, exact: true },
  ];
  assert.deepEqual(packPath([{ ...turn, record: { ...turn.record, weightVersions } }]).weightVersions, weightVersions);
});

Deno.test("packPath refuses every path that does not fit together, and says nothing of why to the caller", () => {
  const three: Shape[] = [1, 2, 3].map((n) => ({ observation: [n], sampled: [[n, -n]], version: "1" }));
  const damages: Record<string, (turns: Turn[]) => Turn[]> = {
    "no turns": () => [],
    "the first has a parent": (turns) => turns.slice(1),
    "a turn is missing": (turns) => [turns[0]!, turns[2]!],
    "turns in another order": (turns) => [turns[0]!, turns[2]!, turns[1]!],
    "another parent": (turns) => changed(turns, 2, { record: { parent: 0 } }),
    "a second root": (turns) => changed(turns, 1, { record: { parent: null } }),
    "one logprob too few": (turns) => changed(turns, 1, { logprobs: new Float32Array(0) }),
    "one logprob too many": (turns) => changed(turns, 1, { logprobs: new Float64Array(2) }),
    "a completion of another length": (turns) =>
      changed(turns, 1, { completion: Uint32Array.of(1, 2), logprobs: new Float32Array(2) }),
    "an observation of another length": (turns) => changed(turns, 1, { observation: Uint32Array.of(1, 2) }),
    "a prompt count too small": (turns) => changed(turns, 1, { record: { promptTokens: 2 } }),
    "a prompt count too large": (turns) => changed(turns, 2, { record: { promptTokens: 6 } }),
    "another prompt count of the first": (turns) => changed(turns, 0, { record: { promptTokens: 2 } }),
    "weights of too few tokens": (turns) => changed(turns, 1, { record: { weightVersions: [] } }),
    "weights of too many tokens": (turns) =>
      changed(turns, 1, { record: { weightVersions: [{ version: "1", start: 0, end: 2, exact: true }] } }),
  };
  assert.equal(packPath(pathOf(three)).response.length, 5);
  for (const [name, damage] of Object.entries(damages)) {
    assert.throws(() => packPath(damage(pathOf(three))), (thrown) => {
      assert.ok(thrown instanceof VerbatimError, name);
      assert.equal(thrown.code, "internal");
      assert.equal(thrown.details, undefined);
      assert.ok(thrown.cause instanceof Error);
      assert.ok(thrown instanceof InconsistentSeries, name);
      assert.match(thrown.reason, /^inconsistent series( at turn \d)?$/);
      assert.deepEqual(tryPackPath(damage(pathOf(three))), thrown, name);
      return true;
    }, name);
  }
});

function changed(
  turns: Turn[],
  at: number,
  change: Partial<Omit<Turn, "record">> & { record?: Partial<TurnRecord> },
): Turn[] {
  const turn = turns[at]!;
  return turns.with(at, { ...turn, ...change, record: { ...turn.record, ...change.record } });
}
