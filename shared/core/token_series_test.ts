import assert from "node:assert/strict";
import fc from "fast-check";
import { TokenSeries } from "./token_series.ts";

const ids = fc.array(fc.nat(0xffffffff), { maxLength: 6 }).map((list) => Uint32Array.from(list));

/** A tree: each node names an earlier node (modulo their number) and what it appends to it. */
const tree = fc.array(fc.record({ parent: fc.nat(), own: ids }), { minLength: 1, maxLength: 30 });

/** Grows the series and, beside it, plain arrays. */
function grow(nodes: readonly { parent: number; own: Uint32Array }[]): { series: TokenSeries; plain: number[] }[] {
  const grown: { series: TokenSeries; plain: number[] }[] = [{ series: TokenSeries.EMPTY, plain: [] }];
  for (const { parent, own } of nodes) {
    const before = grown[parent % grown.length]!;
    grown.push({ series: before.series.append(own), plain: [...before.plain, ...own] });
  }
  return grown;
}

Deno.test("TokenSeries says in every form what plain arrays say, for any tree and any order of asking", () => {
  fc.assert(fc.property(tree, fc.array(fc.nat(), { maxLength: 60 }), (nodes, asked) => {
    const grown = grow(nodes);
    for (const at of [...asked, ...grown.keys()]) {
      const { series, plain } = grown[at % grown.length]!;
      assert.equal(series.json(), plain.join(","));
      assert.equal(series.json(), plain.join(","));
      assert.deepEqual([...series.toArray()], plain);
      assert.equal(series.length, plain.length);
      assert.equal(series.last(), plain.at(-1) ?? null);
    }
  }));
});

Deno.test("TokenSeries.of keeps the array it is given, and is EMPTY of no ids", () => {
  assert.equal(TokenSeries.of(new Uint32Array(0)), TokenSeries.EMPTY);
  assert.deepEqual([...TokenSeries.of(Uint32Array.of(3, 1)).toArray()], [3, 1]);
  assert.equal(TokenSeries.EMPTY.last(), null);
  assert.equal(TokenSeries.EMPTY.json(), "");
});

Deno.test("TokenSeries.append gives the series itself where nothing is appended", () => {
  const series = TokenSeries.of(Uint32Array.of(1));
  assert.equal(series.append(new Uint32Array(0)), series);
  assert.equal(TokenSeries.EMPTY.append(new Uint32Array(0)), TokenSeries.EMPTY);
});

Deno.test("TokenSeries.toArray gives an array of its own", () => {
  const series = TokenSeries.of(Uint32Array.of(1)).append(Uint32Array.of(2));
  series.toArray().fill(9);
  assert.deepEqual([...series.toArray()], [1, 2]);
});

Deno.test("TokenSeries.json serialises ids of a prefix once, and the prefix gives its text up", () => {
  const joined: number[] = [];
  class Counted extends Uint32Array {
    override join(separator?: string): string {
      joined.push(this.length);
      return super.join(separator);
    }
  }
  let series = TokenSeries.of(Counted.of(1, 2, 3));
  const prefix = series;
  assert.equal(series.json(), "1,2,3");
  for (let turn = 0; turn < 20; turn++) {
    series = series.append(Counted.of(turn)).append(Counted.of(turn, turn));
    series.json();
  }
  assert.equal(joined.length, 1 + 20 * 2);
  assert.equal(series.json().split(",").length, series.length);
  assert.equal(joined.length, 1 + 20 * 2, "the newest series keeps its text");
  prefix.json();
  assert.equal(joined.length, 1 + 20 * 2 + 1, "the prefix no longer holds one");
});

Deno.test("TokenSeries.json of a long chain needs no deep stack", () => {
  let series = TokenSeries.EMPTY;
  for (let id = 0; id < 50_000; id++) series = series.append(Uint32Array.of(id));
  assert.equal(series.json().length, series.toArray().join(",").length);
});
