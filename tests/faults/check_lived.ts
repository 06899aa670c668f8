/** What must be on record of a life: what its agent was told, no turn less and none more, and every exported token as it was sampled. */

import assert from "node:assert/strict";
import type { Engine } from "../../shared/ports/engine.ts";
import { checkRowsByForceDecoding } from "../e2e/force_decode.ts";
import type { Body } from "../e2e/gateway_client.ts";
import type { Lived } from "./agent_life.ts";
import type { PatientClient } from "./patient_client.ts";
import type { Said } from "./talks.ts";

const ALL_ROLES = "main,branch,side,superseded";
/** What is said of a history that was rewritten, by policy. */
const REWRITTEN = "rewritten at message 1";
const TWO_LEAVES = "the main root has 2 leaves";

/** What a life is held against. */
export interface Judge {
  /** Has the workers' distribution, and no faults. */
  readonly engine: Engine;
  /** Versions of the weights that there were. */
  readonly versions: ReadonlySet<string>;
}

/** Checks one. */
export async function checkLived(client: PatientClient, judge: Judge, lived: Lived): Promise<void> {
  const { task: { id, history, rewritesAt }, heard, beside, finished } = lived;
  const again = await client.admin("POST", `/tasks/${id}/finish`, { reward: heard.length });
  assert.deepEqual(again, finished, "finishing it again gives the same answer");
  assert.deepEqual(await client.admin("GET", `/tasks/${id}/result`), finished, "so does reading it");
  const task = await client.admin("GET", `/tasks/${id}`);
  assert.deepEqual([task.status, task.reward, task.in_flight], ["finished", heard.length, 0]);

  const told = beside === null ? heard : [...heard, beside];
  const heardTurns = told.map(({ turn }) => turn);
  assert.equal(new Set(heardTurns).size, told.length, `each request has a turn of its own: ${heardTurns}`);
  const { turns } = await client.admin("GET", `/tasks/${id}/turns`);
  assert.deepEqual(turns.map(({ turn }: Body) => turn), Array.from({ length: task.turns }, (_, k) => k));
  assert.deepEqual(
    heardTurns.toSorted((a, b) => a - b),
    turns.map(({ turn }: Body) => turn),
    "no turn less, none more",
  );

  const { rows, reason } = await client.admin("GET", `/tasks/${id}/result?format=rows&roles=${ALL_ROLES}`);
  await checkRowsByForceDecoding(judge.engine, rows);
  for (const row of rows) checkVersions(judge, row);
  if (rewritesAt !== null && history === "append_only") {
    assert.deepEqual([reason, finished.reason], [REWRITTEN, REWRITTEN]);
    assert.deepEqual([finished.result, rows], [null, []]);
    return;
  }
  assert.deepEqual([reason, finished.reason], [null, rewritesAt === null ? null : TWO_LEAVES]);
  checkRows(lived, rows, told);
}

/** Every sampled token bears one version; a version that nobody knows is claimed for none. */
function checkVersions({ versions }: Judge, row: Body): void {
  const bears = new Array<number>(row.response_length).fill(0);
  for (const { version, start, end, exact } of row.weight_versions) {
    assert.ok(versions.has(version) || (version === null && !exact), `weights ${version}`);
    for (let at = start; at < end; at++) bears[at]!++;
  }
  assert.ok(row.sampled_mask.every((bit: number, at: number) => bit === 0 || bears[at] === 1), "one version a token");
}

/** Every turn is in a row, trains once at most, and what was told stands there as it was told. */
function checkRows({ task, heard, finished }: Lived, rows: readonly Body[], told: readonly Said[]): void {
  const exported = new Map<number, { readonly row: Body; readonly span: Body }>();
  let trained = 0;
  for (const row of rows) {
    trained += row.trained_tokens;
    assert.equal(row.loss_mask.filter((bit: number) => bit === 1).length, row.trained_tokens);
    for (const span of row.turns) exported.set(span.turn, { row, span });
  }
  for (const { trained_tokens_in_rollout: inRollout } of rows) assert.equal(inRollout, trained);
  for (const { turn, tokens } of told) {
    const found = exported.get(turn);
    assert.ok(found !== undefined, `turn ${turn} is exported`);
    if (tokens === null) continue;
    const { row, span: { start, end } } = found;
    const at = row.prompt_length + start;
    assert.deepEqual(row.tokens.slice(0, at), tokens.promptIds, `turn ${turn}: prompt`);
    assert.deepEqual(row.tokens.slice(at, row.prompt_length + end), tokens.ids, `turn ${turn}: ids`);
    assert.deepEqual(row.logprobs.slice(start, end), tokens.logprobs, `turn ${turn}: logprobs`);
  }
  if (task.rewritesAt !== null) return;
  const [main] = rows;
  assert.deepEqual(
    [main.role, main.path],
    ["main", heard.map(({ turn }) => turn)],
    "its conversation is the main line",
  );
  const spans = main.turns.reduce((sum: number, { start, end }: Body) => sum + end - start, 0);
  assert.equal(main.trained_tokens, spans, "all of it trains");
  if (finished.result !== null) assert.deepEqual(finished.result.turns.map(({ turn }: Body) => turn), main.path);
}
