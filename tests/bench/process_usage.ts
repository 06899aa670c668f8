/** CPU time and memory of a process, as Linux tells them; elsewhere they are unknown. */

/** What a process used. */
export interface ProcessUsage {
  /** CPU time of all its threads since it started. */
  readonly cpuMs: number;
  /** Resident memory now. */
  readonly rssBytes: number;
}

/** Clock ticks a second in `/proc`, a constant of Linux's interface to programs. */
const TICKS_PER_S = 100;
const PAGE_BYTES = 4096;

/** Usage of a process of this machine, or null. */
export function readUsage(pid: number): ProcessUsage | null {
  if (Deno.build.os !== "linux") return null;
  try {
    // The name in parentheses may hold anything; fields are counted after it, from the third on.
    const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).replace(/^.*\) /s, "").split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { cpuMs: ticks * 1000 / TICKS_PER_S, rssBytes: Number(fields[21]) * PAGE_BYTES };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
