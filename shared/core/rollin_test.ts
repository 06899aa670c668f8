import assert from "node:assert/strict";
import fc from "fast-check";
import { isTeachersTurn, type Rollin } from "./rollin.ts";

const seeds = fc.maxSafeInteger();
const positions = fc.nat(10_000);
const betas = fc.double({ min: 0, max: 1, noNaN: true });

function mixture(beta: number, seed: number): Rollin {
  return { kind: "mixture", beta, seed };
}

Deno.test("isTeachersTurn gives the first turns of a line to the teacher, and no other", () => {
  fc.assert(fc.property(fc.nat(50), positions, (turns, position) => {
    assert.equal(isTeachersTurn({ kind: "prefix", turns }, position), position < turns);
  }));
});

Deno.test("isTeachersTurn decides the same whenever it is asked", () => {
  fc.assert(fc.property(betas, seeds, positions, (beta, seed, position) => {
    assert.equal(isTeachersTurn(mixture(beta, seed), position), isTeachersTurn(mixture(beta, seed), position));
  }));
  // Written down: another process, or a later version, must decide the same of a task under way.
  const decided = Array.from({ length: 16 }, (_, position) => isTeachersTurn(mixture(0.5, 42), position) ? 1 : 0);
  assert.deepEqual(decided, [1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1]);
});

Deno.test("isTeachersTurn is never the teacher's at beta 0 and always at beta 1", () => {
  fc.assert(fc.property(seeds, positions, (seed, position) => {
    assert.equal(isTeachersTurn(mixture(0, seed), position), false);
    assert.equal(isTeachersTurn(mixture(1, seed), position), true);
  }));
});

Deno.test("isTeachersTurn keeps a turn the teacher's where beta grows", () => {
  fc.assert(fc.property(betas, betas, seeds, positions, (one, two, seed, position) => {
    const [low, high] = one < two ? [one, two] : [two, one];
    if (isTeachersTurn(mixture(low, seed), position)) assert.ok(isTeachersTurn(mixture(high, seed), position));
  }));
});

Deno.test("isTeachersTurn takes a share of beta, over seeds and over positions", () => {
  const share = (count: number, decide: (k: number) => boolean) =>
    Array.from({ length: count }, (_, k) => k).filter(decide).length / count;
  for (const beta of [0.1, 0.5, 0.9]) {
    const overSeeds = share(4000, (seed) => isTeachersTurn(mixture(beta, seed), 0));
    const overPositions = share(4000, (position) => isTeachersTurn(mixture(beta, 7), position));
    // Four standard deviations of 4000 draws at one half.
    for (const found of [overSeeds, overPositions]) assert.ok(Math.abs(found - beta) < 0.032, `${beta}: ${found}`);
  }
});
