/** What happens in one run, drawn from its seed: the world, what goes wrong in it and when, and what each agent does. It carries nothing out. */

import type { Fault } from "../../shared/engine/fault.ts";
import { type Random, seededRandom } from "../fixtures/seeded_random.ts";

/** Where tasks are kept. */
export type StoreKind = "memory" | "kv" | "postgres";

/** How the gateway reaches the workers: one of them, all of them itself, a stand-in for a router, or a real one. */
export type Topology = "worker" | "workers" | "standin" | "router";

/** What is counted while agents work: requests that came to a worker, pieces of streams that came to agents, answers that ended there. */
export type Moment = "asked" | "piece" | "heard";

/** What goes wrong. Times in milliseconds are how long it lasts. */
export type WorldFault =
  /** Its connections break and nobody listens; then another process does, which knows nothing of before. */
  | { readonly kind: "worker_killed"; readonly worker: number; readonly downMs: number }
  /** Its next requests meet this. */
  | { readonly kind: "worker_faulty"; readonly worker: number; readonly times: number; readonly fault: Fault }
  /** Somebody aborts a request that came of late. */
  | { readonly kind: "request_aborted"; readonly worker: number; readonly back: number }
  | { readonly kind: "all_aborted"; readonly worker: number }
  /** Somebody pauses it past the gateway. */
  | { readonly kind: "worker_paused"; readonly worker: number; readonly mode: PauseMode; readonly pausedMs: number }
  /** The trainer pauses all workers by way of the gateway, gives them other weights, and lets them go on. */
  | { readonly kind: "weights_updated"; readonly mode: PauseMode; readonly version: string; readonly pausedMs: number }
  | { readonly kind: "router_restarted"; readonly downMs: number }
  /** As at a deployment: answers under way may end, for so long. */
  | { readonly kind: "gateway_restarted"; readonly graceMs: number }
  /** Whatever it was at, it does no more of it. */
  | { readonly kind: "gateway_killed"; readonly downMs: number }
  /** The next calls of the store fail; `ran`: though they took effect. */
  | { readonly kind: "store_failing"; readonly calls: number; readonly ran: boolean }
  /** Somebody else holds the lock of the database's file. */
  | { readonly kind: "store_locked"; readonly lockedMs: number }
  /** Connections to the database are cut: before, or after what is on its way has passed. */
  | { readonly kind: "store_cut"; readonly cuts: number; readonly from: "client" | "server"; readonly passes: boolean };

type PauseMode = "abort" | "retract" | "in_place";

/** A fault and when it comes: when the nth of these has happened. */
export interface PlannedFault {
  readonly after: Moment;
  readonly nth: number;
  readonly fault: WorldFault;
}

/** One request of an agent. */
export interface PlannedTurn {
  readonly stream: boolean;
  readonly maxTokens: number;
  /** The first try is given up by the client: after so many pieces of a stream, or so many milliseconds. */
  readonly hangUpAfter: number | null;
  /** What the agent says, or what its tool answers, next. */
  readonly next: string;
  /** It says so even where a tool was called. */
  readonly speaksAnyway: boolean;
}

/** One agent. */
export interface PlannedTask {
  readonly id: string;
  readonly dialect: "chat" | "messages" | "responses";
  readonly history: "append_only" | "branch";
  readonly onAbort: "resume" | "fail";
  readonly turns: readonly PlannedTurn[];
  /** From this turn on its first message reads otherwise; null: it only appends. */
  readonly rewritesAt: number | null;
  /** Beside its first turn it asks something else, for a title or the like. */
  readonly asksBeside: boolean;
}

/** One run. */
export interface FaultPlan {
  readonly seed: number;
  readonly store: StoreKind;
  readonly topology: Topology;
  /** Requests that a worker computes at once. */
  readonly workerSlots: number;
  /** Generations that the gateway lets in at once. */
  readonly concurrency: number;
  readonly faults: readonly PlannedFault[];
  readonly tasks: readonly PlannedTask[];
}

/** Workers of every world. */
export const WORKERS = 3;
/** Agents of every run. */
export const TASKS = 64;
/** Requests of all agents are more than this; every fault comes before. */
const LAST_REQUEST = 130;

const PAUSE_MODES = ["abort", "retract", "in_place"] as const;
const WORDS = [
  "use a tool",
  "use a tool",
  "Grüße, 世界 😀",
  "plain\n\nwords ",
  "and now?",
  "<|im_end|> is a word here",
];

/** The store of a seed; each has tests of its own. */
export function storeOf(seed: number): StoreKind {
  const place = seed % 5;
  return place === 4 ? "postgres" : place < 2 ? "memory" : "kv";
}

/** The plan of a seed. */
export function planFaults(seed: number): FaultPlan {
  const random = seededRandom(seed * 7919);
  const store = storeOf(seed);
  const topology = topologyOf(seed, random);
  // A gateway that is killed aborts nothing any more: what then goes on without a client goes on for good.
  const killed = random.chance(0.5);
  return {
    seed,
    store,
    topology,
    workerSlots: random.pick([4, 16, 64]),
    concurrency: random.pick([6, 24, 256]),
    faults: Array.from({ length: 4 + random.integer(6) }, () => plannedFault(random, { store, topology, killed }))
      .sort((left, right) => left.nth - right.nth),
    tasks: Array.from(
      { length: TASKS },
      (_, k) => plannedTask(seededRandom(seed * 104_729 + k), `seed-${seed}-task-${k}`),
    ),
  };
}

function topologyOf(seed: number, random: Random): Topology {
  if (seed % 19 === 7) return "router";
  return random.pick(["worker", "workers", "workers", "standin"] as const);
}

/** What decides which faults there can be. */
interface PlannedWorld {
  readonly store: StoreKind;
  readonly topology: Topology;
  /** Whether its gateway may be killed; else its workers may have requests that outlive their clients. */
  readonly killed: boolean;
}

function plannedFault(random: Random, world: PlannedWorld): PlannedFault {
  const after = random.pick(["asked", "asked", "heard", "piece"] as const);
  const nth = 1 + random.integer(after === "piece" ? 3 * LAST_REQUEST : LAST_REQUEST);
  return { after, nth, fault: worldFault(random, world) };
}

function worldFault(random: Random, { store, topology, killed }: PlannedWorld): WorldFault {
  const worker = topology === "worker" ? 0 : random.integer(WORKERS);
  const shortMs = 5 + random.integer(200);
  const mode = random.pick(PAUSE_MODES);
  const draws: readonly (() => WorldFault)[] = [
    () => ({ kind: "worker_killed", worker, downMs: shortMs }),
    () => ({ kind: "worker_killed", worker, downMs: shortMs }),
    () => ({ kind: "worker_faulty", worker, times: 1 + random.integer(6), fault: engineFault(random, killed) }),
    () => ({ kind: "worker_faulty", worker, times: 1 + random.integer(6), fault: engineFault(random, killed) }),
    () => ({ kind: "worker_faulty", worker, times: 1 + random.integer(6), fault: engineFault(random, killed) }),
    () => ({ kind: "worker_faulty", worker, times: 1 + random.integer(6), fault: engineFault(random, killed) }),
    () => ({ kind: "request_aborted", worker, back: random.integer(8) }),
    () => ({ kind: "all_aborted", worker }),
    () => ({ kind: "worker_paused", worker, mode, pausedMs: shortMs }),
    () => ({ kind: "weights_updated", mode, version: String(2 + random.integer(1000)), pausedMs: shortMs }),
    () => ({ kind: "weights_updated", mode, version: String(2 + random.integer(1000)), pausedMs: shortMs }),
    () => ({ kind: "gateway_restarted", graceMs: random.pick([0, 50, 400]) }),
    killed
      ? () => ({ kind: "gateway_killed", downMs: shortMs })
      : () => ({ kind: "gateway_restarted", graceMs: random.pick([0, 50, 400]) }),
    ...(topology === "standin" || topology === "router"
      ? Array.from({ length: 3 }, () => (): WorldFault => ({ kind: "router_restarted", downMs: shortMs }))
      : []),
    ...Array.from({ length: 3 }, () => () => storeFault(random, store)),
  ];
  return random.pick(draws)();
}

function storeFault(random: Random, store: StoreKind): WorldFault {
  switch (store) {
    case "memory":
      return { kind: "store_failing", calls: 1 + random.integer(12), ran: random.chance(0.4) };
    case "kv":
      return { kind: "store_locked", lockedMs: 20 + random.integer(300) };
    case "postgres":
      return {
        kind: "store_cut",
        cuts: 1 + random.integer(6),
        from: random.pick(["client", "server"] as const),
        passes: random.chance(0.5),
      };
  }
}

function engineFault(random: Random, killed: boolean): Fault {
  const afterTokens = random.integer(6);
  const draws: readonly (() => Fault)[] = [
    () => ({ kind: "hang", afterTokens }),
    () => ({ kind: "delay", firstTokenMs: random.integer(150), tokenMs: random.integer(12) }),
    () => ({ kind: "cut", afterTokens }),
    () => ({ kind: "abort", by: "user", afterTokens }),
    () => ({ kind: "abort", by: "queue" }),
    () => ({ kind: "abort", by: "scheduler", status: 503, message: "The request queue is full." }),
    () => ({ kind: "abort", by: "scheduler", status: 500, message: "Scheduler hit an exception", afterTokens }),
    () => ({ kind: "http", status: 500, body: "Internal Server Error", contentType: "text/plain" }),
    () => ({ kind: "http", status: 503 }),
    () => ({ kind: "logprobs", problem: random.pick(["missing", "short", "long"] as const) }),
    () => ({ kind: "logprob", at: afterTokens, value: random.pick([null, "NaN"] as const) }),
    () => ({ kind: "output_id", at: afterTokens, id: 9, everywhere: false }),
    () => ({ kind: "deaf", aborts: 1 + random.integer(2), delayMs: random.integer(50) }),
    () => ({ kind: "meta", drop: ["cached_tokens"] }),
    ...(killed ? [] : [(): Fault => ({ kind: "zombie", afterTokens })]),
  ];
  return random.pick(draws)();
}

function plannedTask(random: Random, id: string): PlannedTask {
  const dialect = random.pick(["chat", "chat", "chat", "messages", "responses"] as const);
  const turns = Array.from({ length: 2 + random.integer(4) }, (): PlannedTurn => {
    const stream = random.chance(0.5);
    return {
      stream,
      maxTokens: random.pick([3, 8, 16, 40]),
      hangUpAfter: random.chance(0.08) ? random.integer(stream ? 5 : 25) : null,
      next: random.pick(WORDS),
      speaksAnyway: random.chance(0.2),
    };
  });
  return {
    id,
    dialect,
    history: random.chance(0.7) ? "append_only" : "branch",
    onAbort: random.chance(0.85) ? "resume" : "fail",
    turns,
    rewritesAt: dialect === "chat" && random.chance(0.08) ? turns.length - 1 : null,
    asksBeside: dialect === "chat" && random.chance(0.15),
  };
}
