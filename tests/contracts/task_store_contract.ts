/** What every task store must do, as one suite. It knows the port and none of the adapters. */

import type { TaskStore } from "../../shared/ports/task_store.ts";
import { JOURNAL_CHECKS } from "./contract_journal.ts";
import { RACE_CHECKS } from "./contract_races.ts";
import { SCORE_CHECKS } from "./contract_scores.ts";
import { TASK_CHECKS } from "./contract_tasks.ts";
import { TURN_CHECKS } from "./contract_turns.ts";

/** One store for one test. */
export interface OpenStore {
  readonly store: TaskStore;
  /** How many entries are still kept under a uid, where the test can look. */
  readonly residue: ((uid: string) => Promise<number>) | null;
  dispose(): Promise<void>;
}

/** One behaviour, shown on an empty store. */
export type Check = (opened: OpenStore) => Promise<void>;

/** Registers the suite for one adapter; every test gets an empty store from `open`. */
export function testTaskStore(name: string, open: () => Promise<OpenStore>): void {
  const checks = { ...TASK_CHECKS, ...TURN_CHECKS, ...RACE_CHECKS, ...JOURNAL_CHECKS, ...SCORE_CHECKS };
  for (const [behaviour, check] of Object.entries(checks)) {
    Deno.test(`${name} ${behaviour}`, async () => {
      const opened = await open();
      try {
        await check(opened);
      } finally {
        await opened.dispose();
      }
    });
  }
}
