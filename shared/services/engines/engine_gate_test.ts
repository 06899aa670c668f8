import assert from "node:assert/strict";
import fc from "fast-check";
import { createFakeClock, eventLoopTurn } from "../../../tests/fixtures/fake_clock.ts";
import { EngineGate } from "./engine_gate.ts";
import type { Slot } from "../teacher/slots.ts";

const NEW = { returning: false };
const RETURNING = { returning: true };
const never = new AbortController().signal;

function gateOf(mostRunning: number, mostWaiting = 1000, clock = createFakeClock()): EngineGate {
  return new EngineGate({ mostRunning, mostWaiting, clock });
}

/** Enters and notes the name once inside. */
function entering(gate: EngineGate, entered: string[], name: string, options = NEW): Promise<Slot> {
  return gate.enter(name.slice(0, 1), options, never).then((slot) => {
    entered.push(name);
    return slot;
  });
}

Deno.test("EngineGate lets keys take turns, and keeps the order of coming within a key", async () => {
  const gate = gateOf(1);
  const entered: string[] = [];
  const pass = (name: string): Promise<void> =>
    entering(gate, entered, name).then((slot) => {
      slot[Symbol.dispose]();
      // A place is given back once.
      slot[Symbol.dispose]();
    });
  const inside = await entering(gate, entered, "x");
  const coming = ["a1", "a2", "a3", "b1", "b2", "c1"].map(pass);
  assert.deepEqual([gate.running, gate.waiting], [1, 6]);
  inside[Symbol.dispose]();
  await Promise.all(coming);
  assert.deepEqual(entered, ["x", "a1", "b1", "c1", "a2", "b2", "a3"]);
  assert.deepEqual([gate.running, gate.waiting], [0, 0]);
});

Deno.test("EngineGate lets who was put out go first, however many wait, and never refuses it", async () => {
  const gate = gateOf(1, 1);
  const entered: string[] = [];
  const first = await entering(gate, entered, "a");
  const waiting = entering(gate, entered, "b");
  const back = entering(gate, entered, "c", RETURNING);
  await assert.rejects(gate.enter("d", NEW, never), { code: "busy" });
  first[Symbol.dispose]();
  (await back)[Symbol.dispose]();
  (await waiting)[Symbol.dispose]();
  assert.deepEqual(entered, ["a", "c", "b"]);
});

Deno.test("EngineGate lets nobody enter while it is paused, and keeps who is inside", async () => {
  const gate = gateOf(2);
  const entered: string[] = [];
  const inside = await entering(gate, entered, "a");
  gate.pause();
  const coming = [entering(gate, entered, "b"), entering(gate, entered, "c", RETURNING)];
  inside[Symbol.dispose]();
  await eventLoopTurn();
  assert.deepEqual([entered, gate.running, gate.waiting, gate.paused], [["a"], 0, 2, true]);
  gate.resume();
  await Promise.all(coming);
  assert.deepEqual(entered, ["a", "c", "b"]);
  assert.equal(gate.running, 2);
});

Deno.test("EngineGate opens by itself an hour after the latest pause that nobody ended, whoever waits, and keeps no timer else", async () => {
  const clock = createFakeClock();
  const gate = gateOf(1, 1000, clock);
  const entered: string[] = [];
  gate.pause();
  assert.equal(clock.sleeping, 0, "nobody waits");
  await clock.advance(3_000_000);
  const gone = new AbortController();
  const leaving = assert.rejects(gate.enter("a", NEW, gone.signal));
  gate.pause();
  gone.abort();
  await leaving;
  assert.equal(clock.sleeping, 0, "nobody waits any more");
  const waiting = entering(gate, entered, "a");
  await clock.advance(3_599_999);
  assert.deepEqual([entered, gate.paused, clock.sleeping], [[], true, 1]);
  await clock.advance(1);
  (await waiting)[Symbol.dispose]();
  assert.deepEqual([entered, gate.paused, clock.sleeping], [["a"], false, 0]);
  gate.pause();
  await clock.advance(3_600_000);
  (await entering(gate, entered, "b"))[Symbol.dispose]();
  assert.deepEqual([gate.paused, gate.running, clock.sleeping], [false, 0, 0], "who comes late waits for nothing");
});

Deno.test("EngineGate tells a refused caller when to come again, by the pace of late", async () => {
  const clock = createFakeClock();
  const gate = gateOf(1, 3, clock);
  const refused = async (): Promise<number> => {
    const error = await gate.enter("x", NEW, never).then(() => null, (thrown) => thrown);
    assert.deepEqual([error.code, error.status], ["busy", 429]);
    return error.retryAfterS;
  };
  let inside = await gate.enter("a", NEW, never);
  const line: Promise<Slot>[] = [];
  const fill = (): void => {
    while (gate.waiting < 3) line.push(gate.enter("a", NEW, never));
  };
  fill();
  assert.equal(await refused(), 5, "no pace is known");
  for (let left = 0; left < 64; left++) {
    await clock.advance(4000);
    inside[Symbol.dispose]();
    inside = await line.shift()!;
    fill();
  }
  // Three wait at four seconds each.
  assert.equal(await refused(), 12);
  await clock.advance(3_600_000);
  assert.equal(await refused(), 60, "at most a minute");
  gate.pause();
  assert.equal(await refused(), 5);
});

Deno.test("EngineGate does not let in who has left already, and takes who leaves out of the line", async () => {
  const gate = gateOf(1);
  const gone = new AbortController();
  gone.abort(new Error("gone"));
  await assert.rejects(gate.enter("a", NEW, gone.signal), /gone/);
  const inside = await gate.enter("a", NEW, never);
  const leaving = new AbortController();
  const waiting = gate.enter("b", NEW, leaving.signal);
  const behind = gate.enter("b", NEW, never);
  leaving.abort(new Error("left"));
  await assert.rejects(waiting, /left/);
  assert.equal(gate.waiting, 1);
  inside[Symbol.dispose]();
  await behind;
  assert.deepEqual([gate.running, gate.waiting], [1, 0]);
});

/** One caller of the model, and where it stands. */
interface Caller {
  readonly key: string;
  readonly returning: boolean;
  readonly leaving: AbortController;
  state: "waiting" | "inside" | "gone";
  slot: Slot | null;
}

/** What happened in the line, in order. */
interface Noted {
  readonly what: "came" | "entered";
  readonly caller: Caller;
}

const steps = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("enter" as const),
      key: fc.constantFrom("a", "b", "c", "d"),
      returning: fc.nat(9).map((draw) => draw === 0),
    }),
  },
  { weight: 5, arbitrary: fc.record({ type: fc.constantFrom("leave", "abort"), who: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom("pause", "resume") }) },
);

Deno.test("EngineGate under any coming, leaving and pausing: no place is lost, no key is passed twice by another", async () => {
  const run = fc.asyncProperty(
    fc.integer({ min: 1, max: 3 }),
    fc.array(steps, { maxLength: 60 }),
    async (limit, plan) => {
      const gate = gateOf(limit);
      const callers: Caller[] = [];
      const log: Noted[] = [];
      const those = (state: Caller["state"]): Caller[] => callers.filter((caller) => caller.state === state);
      const come = (key: string, returning: boolean): void => {
        const caller: Caller = { key, returning, leaving: new AbortController(), state: "waiting", slot: null };
        callers.push(caller);
        log.push({ what: "came", caller });
        gate.enter(key, { returning }, caller.leaving.signal).then(
          (slot) => {
            Object.assign(caller, { slot, state: "inside" });
            log.push({ what: "entered", caller });
          },
          () => caller.state = "gone",
        );
      };
      const leave = (caller: Caller | undefined): void => {
        if (caller === undefined) return;
        caller.state = "gone";
        caller.slot?.[Symbol.dispose]();
      };
      for (const step of plan) {
        if ("key" in step) come(step.key, step.returning);
        else if ("who" in step) {
          const some = those(step.type === "leave" ? "inside" : "waiting");
          const one = some[step.who % Math.max(1, some.length)];
          if (step.type === "leave") leave(one);
          else one?.leaving.abort(new Error("gone"));
        } else if (step.type === "pause") gate.pause();
        else gate.resume();
        await settled();
        assert.deepEqual([gate.running, gate.waiting], [those("inside").length, those("waiting").length]);
        assert.ok(gate.running <= limit);
        if (!gate.paused && gate.waiting > 0) assert.equal(gate.running, limit, "nobody waits beside a free place");
      }
      gate.resume();
      await settled();
      for (let left = callers.length; left > 0; left--) {
        leave(those("inside")[0]);
        await settled();
      }
      assert.deepEqual([gate.running, gate.waiting, those("waiting")], [0, 0, []]);
      assertFair(log);
    },
  );
  await fc.assert(run, { numRuns: 300 });
});

/** In a key the order of coming holds; while a key's first waits, every other key is served once at most. */
function assertFair(log: readonly Noted[]): void {
  const lastOf = new Map<string, number>();
  const anew = log.map((noted, at) => ({ ...noted, at })).filter(({ caller }) => !caller.returning);
  for (const { what, caller, at } of anew) {
    if (what !== "entered") continue;
    const came = anew.find((noted) => noted.caller === caller)!.at;
    const since = Math.max(came, lastOf.get(caller.key) ?? -1);
    const passed = anew.filter((noted) => noted.what === "entered" && noted.at > since && noted.at < at);
    const keys = passed.map((noted) => noted.caller.key);
    assert.equal(new Set(keys).size, keys.length, `while ${caller.key} waited: ${keys.join(" ")}`);
    const overtaken = anew.filter((noted) =>
      noted.what === "entered" && noted.at > at && noted.caller.key === caller.key
    )
      .filter((noted) => anew.find(({ caller: other }) => other === noted.caller)!.at < came);
    assert.deepEqual(overtaken, [], "within a key the order of coming holds");
    lastOf.set(caller.key, at);
  }
}

/** Lets everything run that is ready to, without a timer. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 8; turns++) await Promise.resolve();
}
