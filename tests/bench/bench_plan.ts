/** How much is measured. */

import type { FirstDeltaPlan } from "./first_delta_scenario.ts";
import type { LongTaskPlan } from "./long_task_scenario.ts";

/** One place of the grid. */
export interface OverheadCell {
  /** Agents at work at once. */
  readonly sessions: number;
  /** Tokens of a prompt, on average over a task. */
  readonly promptTokens: number;
  /** Turns of one slice, all agents together. */
  readonly turnsPerSlice: number;
  /** Measured turns of one task; then its agent takes up another one, since the prompts would outgrow their row. */
  readonly turnsPerTask: number;
}

/** The sizes of one run. */
export interface BenchPlan {
  /** Goes before the others and is not reported: a server's code is compiled while it serves its first thousands of turns. */
  readonly warmUp: OverheadCell;
  readonly cells: readonly OverheadCell[];
  /** Most slices of each target in a cell. */
  readonly rounds: number;
  /** After this long a cell begins no further round: a busy machine gets fewer. */
  readonly cellMs: number;
  /** A slice that takes longer ends before all its turns are begun. */
  readonly sliceMs: number;
  /** Whole prompts that are encoded at once while the event loop is watched. */
  readonly stall: { readonly prompts: number; readonly promptTokens: number };
  readonly longTask: LongTaskPlan;
  readonly firstDelta: FirstDeltaPlan;
  /** Starts of the gateway. */
  readonly coldStarts: number;
  /** The teacher's reply that is read. */
  readonly scan: { readonly positions: number; readonly topK: number; readonly rounds: number };
  /** After this long no further cell is begun; what is left out is named. */
  readonly budgetMs: number;
  /** The whole run is given up after this long. */
  readonly deadlineMs: number;
}

const K = 1024;

/** The grid of the README. */
export const FULL_PLAN: BenchPlan = {
  warmUp: { sessions: 8, promptTokens: K, turnsPerSlice: 600, turnsPerTask: 12 },
  cells: [
    { sessions: 1, promptTokens: K, turnsPerSlice: 400, turnsPerTask: 12 },
    { sessions: 32, promptTokens: K, turnsPerSlice: 1024, turnsPerTask: 12 },
    { sessions: 256, promptTokens: K, turnsPerSlice: 1024, turnsPerTask: 12 },
    { sessions: 1, promptTokens: 8 * K, turnsPerSlice: 256, turnsPerTask: 12 },
    { sessions: 32, promptTokens: 8 * K, turnsPerSlice: 768, turnsPerTask: 12 },
    { sessions: 256, promptTokens: 8 * K, turnsPerSlice: 768, turnsPerTask: 12 },
    { sessions: 1, promptTokens: 32 * K, turnsPerSlice: 128, turnsPerTask: 24 },
    { sessions: 32, promptTokens: 32 * K, turnsPerSlice: 256, turnsPerTask: 24 },
    { sessions: 256, promptTokens: 32 * K, turnsPerSlice: 512, turnsPerTask: 24 },
    { sessions: 1, promptTokens: 128 * K, turnsPerSlice: 48, turnsPerTask: 24 },
    { sessions: 32, promptTokens: 128 * K, turnsPerSlice: 96, turnsPerTask: 24 },
  ],
  rounds: 5,
  cellMs: 15_000,
  sliceMs: 2000,
  stall: { prompts: 8, promptTokens: 128 * K },
  coldStarts: 3,
  longTask: { turns: 400, promptTokens: 64 * K, rounds: 5 },
  firstDelta: {
    promptTokens: [K, 8 * K],
    sessions: 32,
    sliceMs: 2500,
    turnsPerTask: 12,
    rounds: 5,
    calibrationTurns: 128,
    mostCpuShare: 0.3,
  },
  scan: { positions: 128 * K, topK: 20, rounds: 3 },
  budgetMs: 240_000,
  deadlineMs: 600_000,
};

/** Enough to see that everything works, and roughly where it stands. */
export const QUICK_PLAN: BenchPlan = {
  warmUp: { sessions: 8, promptTokens: K, turnsPerSlice: 400, turnsPerTask: 12 },
  cells: [
    { sessions: 1, promptTokens: K, turnsPerSlice: 128, turnsPerTask: 12 },
    { sessions: 32, promptTokens: 8 * K, turnsPerSlice: 512, turnsPerTask: 12 },
  ],
  rounds: 3,
  cellMs: 15_000,
  sliceMs: 2000,
  stall: { prompts: 8, promptTokens: 32 * K },
  coldStarts: 1,
  longTask: { turns: 100, promptTokens: 16 * K, rounds: 1 },
  firstDelta: {
    promptTokens: [8 * K],
    sessions: 32,
    sliceMs: 1500,
    turnsPerTask: 12,
    rounds: 2,
    calibrationTurns: 64,
    mostCpuShare: 0.3,
  },
  scan: { positions: 8 * K, topK: 20, rounds: 1 },
  budgetMs: 60_000,
  deadlineMs: 300_000,
};
