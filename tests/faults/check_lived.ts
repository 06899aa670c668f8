/** What must be on record of a life: what its agent was told, no turn less and none more, and every exported token as it was sampled. */

import assert from "node:assert/strict";
import { checkRowsByForceDecoding } from "../e2e/force_decode.ts";
import type { Body } from "../e2e/gateway_client.ts";
import type { Lived } from "./agent_life.ts";
import { FIRST_VERSION, type Judge } from "./judge.ts";
import type { PatientClient } from "./patient_client.ts";
import type { Said } from "./talks.ts";

const ALL_ROLES = "main,branch,side,superseded";
/** Logprobs are float32 on the wire; beyond that they are the same numbers. */
const TOLERANCE = 1e-6;
/** What is said of a history that was rewritten, by policy. */
const REWRITTEN = "rewritten at message 1";
const TWO_LEAVES = "the main root has 2 leaves";

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
  await checkTokens(judge, rows);
  if (rewritesAt !== null && history === "append_only") {
    assert.deepEqual([reason, finished.reason], [REWRITTEN, REWRITTEN]);
    assert.deepEqual([finished.result, rows], [null, []]);
    return;
  }
  assert.deepEqual([reason, finished.reason], [null, rewritesAt === null ? null : TWO_LEAVES]);
  checkRows(lived, rows, told);
}

/**
 * Every sampled token has the logprob that the weights named for it give it after the tokens before it; where a record
 * says that it does not know exactly, some weights that there were.
 */
async function checkTokens(judge: Judge, rows: readonly Body[]): Promise<void> {
  const named = rows.flatMap((row) => row.weight_versions);
  if (named.every(({ version, exact }: Body) => version === FIRST_VERSION && exact)) {
    await checkRowsByForceDecoding(judge.of(FIRST_VERSION), rows);
    return;
  }
  for (const row of rows) await checkAcrossVersions(judge, row);
}

async function checkAcrossVersions(judge: Judge, row: Body): Promise<void> {
  const prompt = row.tokens.slice(0, row.prompt_length);
  const response = row.tokens.slice(row.prompt_length);
  const found = new Map<string, Float64Array>();
  for (const version of versionsNeeded(judge, row)) found.set(version, await judge.scores(version, prompt, response));
  const segments: readonly Body[] = row.weight_versions;
  for (const [at, bit] of row.sampled_mask.entries()) {
    if (bit === 0) continue;
    const [segment, ...more] = segments.filter(({ start, end }) => start <= at && at < end);
    assert.ok(segment !== undefined && more.length === 0, `token ${at} bears one version`);
    const candidates = segment.exact ? [segment.version] : judge.versions;
    assert.ok(
      candidates.some((version) => Math.abs(found.get(version)![at]! - row.logprobs[at]) <= TOLERANCE),
      `token ${at} of the row to turn ${row.path.at(-1)}: exported ${row.logprobs[at]} by ${JSON.stringify(segment)}`,
    );
  }
}

function versionsNeeded(judge: Judge, row: Body): readonly string[] {
  for (const { version, exact } of row.weight_versions) {
    assert.ok(judge.versions.includes(version) || (version === null && !exact), `there were weights ${version}`);
  }
  if (row.weight_versions.some(({ exact }: Body) => !exact)) return judge.versions;
  return [...new Set<string>(row.weight_versions.map(({ version }: Body) => version))];
}

/** Every turn is in a row, trains once at most, and what was told stands there as it was told. */
function checkRows({ task, heard, finished }: Lived, rows: readonly Body[], told: readonly Said[]): void {
  const exported = new Map<number, { readonly row: Body; readonly span: Body }>();
  const trains = new Set<number>();
  let trained = 0;
  for (const row of rows) {
    trained += row.trained_tokens;
    assert.equal(row.tokens.length, row.prompt_length + row.response_length);
    for (const name of ["loss_mask", "sampled_mask", "logprobs"]) assert.equal(row[name].length, row.response_length);
    assert.equal(row.loss_mask.filter((bit: number) => bit === 1).length, row.trained_tokens);
    assert.ok(row.logprobs.every((logprob: number, at: number) => row.sampled_mask[at] === 1 || logprob === 0));
    for (const span of row.turns) {
      exported.set(span.turn, { row, span });
      if (row.loss_mask[span.start] === 0) continue;
      assert.ok(!trains.has(span.turn), `turn ${span.turn} trains once`);
      trains.add(span.turn);
    }
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
