/** Scaffolds at random, recorded: whatever they do, what is exported was sampled, in the context it is exported in, and once. */

import assert from "node:assert/strict";
import fc from "fast-check";
import type { TaskRecord } from "../../shared/core/task.ts";
import type { TurnRole } from "../../shared/core/judgement.ts";
import type { JudgedTask } from "../../shared/services/exports/judged_task.ts";
import { createRecorderWorld, type RecorderWorld } from "../fixtures/recorder_world.ts";
import type { Body } from "../e2e/harness.ts";
import {
  interleaving,
  type Manner,
  playAtOnce,
  type PlayedRequest,
  playScaffold,
  type ScaffoldOptions,
} from "./recorded_scaffold.ts";
import { type Move, moves } from "./scaffold_model.ts";

const ROLES: readonly TurnRole[] = ["main", "branch", "side", "superseded"];
const ROLE_SETS = Array.from({ length: 16 }, (_, bits) => ROLES.filter((_, k) => (bits >> k & 1) === 1));

/** Notes that say what came after what. */
const OF_THE_ORDER = new Set(["conversation_continued_elsewhere", "another_root_went_on"]);

const PLAIN: Manner = { style: 0, isRetry: false, delivered: true, isCut: false, isParallel: false };

const manners = fc.array(
  fc.record({
    style: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1000 })),
    isRetry: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
    delivered: fc.integer({ min: 0, max: 5 }).map((n) => n > 0),
    isCut: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
    isParallel: fc.boolean(),
  }),
  { minLength: 1, maxLength: 10 },
);

const policies = fc.record({
  history: fc.constantFrom("append_only", "branch"),
  echo: fc.constantFrom("lenient", "strict"),
  reasoning_history: fc.constantFrom("keep", "keep", "template"),
  train_roles: fc.constantFrom(["main", "branch"], [...ROLES], ["main"], ["side", "superseded"]),
});

const RUNS = { numRuns: 70 };

Deno.test("the recorder answers repeats and extends series as the plain reference says, and exports what was sampled", async () => {
  await using world = await createRecorderWorld();
  await fc.assert(
    fc.asyncProperty(moves, manners, policies, async (made, sent, policy) => {
      const task = await world.createTask(policy);
      const played = await playScaffold(world, { task, name: "one", moves: made, manners: sent });
      await checkTask(world, task, played);
    }),
    RUNS,
  );
});

Deno.test("calls at once are recorded like any others: each turn once, in its sampled context", async () => {
  await using world = await createRecorderWorld();
  await fc.assert(
    fc.asyncProperty(moves, manners, policies, async (made, sent, policy) => {
      const task = await world.createTask(policy);
      const played = await playAtOnce(world, { task, name: "one", moves: made, manners: sent });
      await checkTask(world, task, played);
    }),
    RUNS,
  );
});

Deno.test("two orders of the same requests are one forest up to the numbers of turns", async () => {
  await using world = await createRecorderWorld();
  await fc.assert(
    fc.asyncProperty(moves, moves, manners, fc.nat(), fc.nat(), async (one, two, sent, order, other) => {
      const first = await playTwo(world, { moves: [one, two], manners: sent, order });
      const second = await playTwo(world, { moves: [one, two], manners: sent, order: other });
      assert.deepEqual(second, first);
    }),
    { numRuns: 30 },
  );
});

Deno.test("append_only exports a scaffold that only appends, and nothing once its last act was to leave the line", async () => {
  await using world = await createRecorderWorld();
  const appends: fc.Arbitrary<Move[]> = fc.array(
    fc.record({
      kind: fc.constantFrom<Move["kind"][]>("append", "append", "append", "retry"),
      from: fc.constant(0),
      at: fc.nat(20),
      echo: fc.constantFrom<Move["echo"][]>("same", "args", "text", "calls", "ids", "changed", "joined"),
      fails: fc.constant(false),
      text: fc.nat(2),
    }),
    { minLength: 2, maxLength: 8 },
  );
  const departures = fc.record({
    kind: fc.constantFrom("edit" as const, "rollback" as const, "missing" as const),
    at: fc.nat(20),
  });
  await fc.assert(
    fc.asyncProperty(appends, departures, async (made, departure) => {
      const scaffold = { name: "one", manners: [PLAIN] };
      const stays = await world.createTask({ history: "append_only", echo: "lenient" });
      await playScaffold(world, { ...scaffold, task: stays, moves: made });
      const judged = await world.services.exporter.judged((await world.services.tasks.get(stays.taskId)).task);
      assert.deepEqual(judged.judgement.capture, { valid: true, reason: null });
      assert.equal(judged.judgement.mainLine.at(-1), judged.turns.length - 1, "the line ends in the latest sample");

      const leaves = await world.createTask({ history: "append_only", echo: "lenient" });
      const last = departingMove(departure.kind, departure.at, { depth: depthOf(judged) });
      await playScaffold(world, { ...scaffold, task: leaves, moves: [...made, last] });
      const closed = await finish(world, leaves);
      const { reason, result } = await world.services.exporter.region(closed);
      assert.equal(result, null, "nothing is exported after a violation");
      if (departure.kind === "rollback") assert.equal(reason, "shrank");
      else assert.match(String(reason), /^rewritten at message \d+$/);
      assert.deepEqual((await world.services.exporter.result(closed, { format: "rows" })).rows, []);
    }),
    RUNS,
  );
});

/** A move that leaves a line whose latest prompt has `depth` units. What changes the first unit is another conversation. */
function departingMove(
  kind: "edit" | "rollback" | "missing",
  at: number,
  { depth }: { readonly depth: number },
): Move {
  const move = { from: 0, fails: false, text: 0, echo: "same" } as const;
  switch (kind) {
    case "edit":
      return { ...move, kind, at: 1 + at % (depth - 1) };
    case "rollback":
      return { ...move, kind, at: at % (depth - 1) };
    case "missing":
      return { ...move, kind: "append", at, echo: "missing" };
  }
}

/** Units of the latest prompt. */
function depthOf(judged: JudgedTask): number {
  return judged.forest.entries.at(-1)!.node.depth;
}

async function finish(world: RecorderWorld, task: TaskRecord): Promise<TaskRecord> {
  const finished = await world.services.closer.finish(task.taskId, {
    outcome: null,
    cause: null,
    reward: 1,
    metadata: {},
    waitMs: 0,
  });
  return finished.task;
}

/** Everything that must hold of a recorded task, whatever its scaffold did. */
async function checkTask(world: RecorderWorld, task: TaskRecord, played: readonly PlayedRequest[]): Promise<void> {
  const closed = await finish(world, task);
  const judged = await world.services.exporter.judged(closed);
  const made = new Set(played.flatMap(({ turn }) => turn === null ? [] : [turn]));
  assert.deepEqual([...made].sort((a, b) => a - b), judged.turns.map(({ record }) => record.turn));
  const contexts = checkContexts(world, judged);
  assert.equal(world.logger.lines.filter(({ level }) => level === "error").length, 0);

  const exporter = world.services.exporter;
  const region = await exporter.region(closed);
  if (!judged.judgement.capture.valid) {
    assert.equal(task.settings.history, "append_only");
    assert.deepEqual([region.result, region.reason], [null, judged.judgement.capture.reason]);
    assert.deepEqual((await exporter.result(closed, { format: "rows", roles: ROLES })).rows, []);
    return;
  }
  for (const roles of ROLE_SETS) {
    for (const maxVersionSpan of [undefined, 1, 2]) {
      const { rows } = await exporter.result(closed, { format: "rows", roles, maxVersionSpan }) as Body;
      checkRows(judged, contexts, { rows, roles, maxVersionSpan });
    }
  }
  const { rows } = await exporter.result(closed, { format: "rows" }) as Body;
  checkRows(judged, contexts, { rows, roles: ROLES, maxVersionSpan: undefined });
  checkRegion(region, { rows, judged });
}

/** For each turn the tokens before its own, from the turns that were stored; they are what its sample was drawn from. */
function checkContexts(world: RecorderWorld, judged: JudgedTask): readonly number[][] {
  const series: number[][] = [];
  return judged.turns.map(({ record, observation, completion, logprobs }) => {
    const context = [...record.parent === null ? [] : series[record.parent]!, ...observation];
    series.push([...context, ...completion]);
    const sampled = world.sampled.get(record.rid);
    assert.ok(sampled !== undefined, "every stored turn was sampled");
    assert.deepEqual(context, sampled.prompt, `turn ${record.turn} was sampled from what is stored before it`);
    assert.deepEqual(Array.from(completion), sampled.ids);
    assert.deepEqual(Array.from(logprobs), sampled.logprobs);
    return context;
  });
}

function checkRows(
  judged: JudgedTask,
  contexts: readonly (readonly number[])[],
  exported: { readonly rows: Body[]; readonly roles: readonly string[]; readonly maxVersionSpan: number | undefined },
): void {
  const { rows, roles, maxVersionSpan } = exported;
  const { trainRoles } = judged.task.settings;
  const owners = new Map<number, number>();
  const leaves = new Set<number>();
  rows.forEach((row, index) => {
    assert.equal(row.tokens.length, row.prompt_length + row.response_length);
    for (const name of ["sampled_mask", "loss_mask", "logprobs"]) assert.equal(row[name].length, row.response_length);
    assert.ok(roles.includes(row.role));
    assert.ok(
      maxVersionSpan === undefined ||
        new Set(row.weight_versions.map((one: Body) => one.version)).size <= maxVersionSpan,
    );
    const leaf = row.path.at(-1);
    assert.ok(!leaves.has(leaf), "a leaf has one row");
    leaves.add(leaf);
    assert.equal(row.role, judged.judgement.turns[leaf]!.role);
    const sampledMask = new Array<number>(row.response_length).fill(0);
    const lossMask = new Array<number>(row.response_length).fill(0);
    const logprobs = new Array<number>(row.response_length).fill(0);
    assert.deepEqual(row.turns.map((span: Body) => span.turn), row.path);
    for (const { turn, start, end } of row.turns) {
      const { completion, logprobs: own } = judged.turns[turn]!;
      assert.deepEqual(row.tokens.slice(0, row.prompt_length + start), contexts[turn], "the sampled context");
      assert.deepEqual(row.tokens.slice(row.prompt_length + start, row.prompt_length + end), Array.from(completion));
      sampledMask.fill(1, start, end);
      logprobs.splice(start, end - start, ...own);
      if (!trainRoles.includes(row.role) || owners.has(turn)) continue;
      owners.set(turn, index);
      lossMask.fill(1, start, end);
    }
    assert.deepEqual(row.sampled_mask, sampledMask);
    assert.deepEqual(row.loss_mask, lossMask, "each turn trains in the first row that may train it");
    assert.deepEqual(row.logprobs, logprobs);
    assert.equal(row.trained_tokens, lossMask.reduce((sum, bit) => sum + bit, 0));
  });
  const trained = [...owners.keys()].reduce((sum, turn) => sum + judged.turns[turn]!.completion.length, 0);
  for (const row of rows) {
    assert.deepEqual([row.rows_in_rollout, row.trained_tokens_in_rollout], [rows.length, trained]);
  }
  if (maxVersionSpan !== undefined) return;
  // Which leaves there are is plain: turns that nothing extends, and the end of the main line.
  const extended = new Set(judged.turns.map(({ record }) => record.parent));
  const end = judged.judgement.mainLine.at(-1);
  const wanted = judged.turns.flatMap(({ record: { turn } }) =>
    (turn === end || !extended.has(turn)) && roles.includes(judged.judgement.turns[turn]!.role) ? [turn] : []
  );
  assert.deepEqual([...leaves].sort((a, b) => a - b), wanted);
  if (roles.length < ROLES.length) return;
  const everywhere = new Set(rows.flatMap((row) => row.path));
  assert.equal(everywhere.size, judged.turns.length, "no turn is lost");
  if (ROLES.every((role) => trainRoles.includes(role))) assert.equal(owners.size, judged.turns.length);
}

/** The region is the first row. */
function checkRegion(region: Body, { rows, judged }: { readonly rows: Body[]; readonly judged: JudgedTask }): void {
  if (region.result === null) {
    const isEmpty = judged.judgement.mainLine.length === 0;
    assert.match(region.reason, isEmpty ? /^nothing was generated$/ : /^the main root has \d+ leaves$/);
    return;
  }
  const [row] = rows;
  const { result } = region;
  assert.deepEqual(result.prompt_token_ids, row.tokens.slice(0, row.prompt_length));
  assert.deepEqual(result.completion_token_ids, row.tokens.slice(row.prompt_length));
  assert.deepEqual([result.loss_mask, result.logprobs], [row.sampled_mask, row.logprobs]);
  assert.equal(region.other_rows, rows.length - 1);
}

/** Plays two scaffolds of one task in an order, and shows what came of them with turns named by scaffold and request. */
async function playTwo(
  world: RecorderWorld,
  two: { readonly moves: readonly (readonly Move[])[]; readonly manners: readonly Manner[]; readonly order: number },
): Promise<unknown> {
  // With marks of the main line it does not depend on the order which conversation is the main one.
  const task = await world.createTask({ history: "branch", echo: "strict", main: { header: { "x-agent": "first" } } });
  const order = interleaving(two.moves[0]!.length, two.moves[1]!.length, two.order);
  const turns = new Baton(order);
  const names = new Map<number, string>();
  const plays = ["first", "second"].map(async (name, k) => {
    const options: ScaffoldOptions = {
      task,
      name,
      headers: { "x-agent": name },
      moves: two.moves[k]!,
      manners: two.manners,
      turnOf: () => turns.wait(name),
    };
    const played = await playScaffold(world, options);
    turns.done(name);
    for (const [at, { turn, isReplay }] of played.entries()) {
      if (turn !== null && !isReplay) names.set(turn, `${name} ${at}`);
    }
  });
  await Promise.all(plays);
  const closed = await finish(world, task);
  const judged = await world.services.exporter.judged(closed);
  const { rows } = await world.services.exporter.result(closed, { format: "rows", roles: ROLES }) as Body;
  const named = (turn: number | null) => turn === null ? null : names.get(turn);
  return {
    turns: judged.turns.map(({ record, observation, completion }) => ({
      name: named(record.turn),
      parent: named(record.parent),
      role: judged.judgement.turns[record.turn]!.role,
      observation: Array.from(observation),
      completion: Array.from(completion),
    })).sort(byName),
    decisions: judged.judgement.decisions.map((decision) => ({
      turn: named(decision.turn),
      relation: decision.relation,
      relatedTo: named(decision.relatedTo),
      echo: decision.echo,
      verdict: decision.verdict,
      strict: decision.strictVerdict,
    })).sort(byText),
    mainLine: judged.judgement.mainLine.map(named),
    capture: judged.judgement.capture,
    notes: judged.judgement.notes.filter((note) => !OF_THE_ORDER.has(note)),
    rows: rows.map((row: Body) => ({ path: row.path.map(named), role: row.role, trained: row.trained_tokens })).sort(
      byText,
    ),
  };
}

function byName(a: { name: string | null | undefined }, b: { name: string | null | undefined }): number {
  return String(a.name) < String(b.name) ? -1 : 1;
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

/** Says whose turn it is. */
class Baton {
  readonly #order: string[];
  readonly #waiting = new Map<string, () => void>();
  #busy: string | null = null;

  constructor(order: readonly string[]) {
    this.#order = [...order];
  }

  /** Gives up the turn, and waits for the next. */
  wait(name: string): Promise<void> {
    this.done(name);
    return new Promise((resolve) => {
      this.#waiting.set(name, resolve);
      this.#pass();
    });
  }

  /** Gives up the turn. */
  done(name: string): void {
    if (this.#busy !== name) return;
    this.#busy = null;
    this.#pass();
  }

  #pass(): void {
    const [next] = this.#order;
    const go = next === undefined ? undefined : this.#waiting.get(next);
    if (this.#busy !== null || next === undefined || go === undefined) return;
    this.#order.shift();
    this.#waiting.delete(next);
    this.#busy = next;
    go();
  }
}
