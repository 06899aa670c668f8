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
      assert.equal(jsonOf(series), plain.join(","));
      assert.equal(jsonOf(series), plain.join(","));
      assert.deepEqual([...series.toArray()], plain);
      assert.equal(series.length, plain.length);
      assert.equal(series.last(), plain.at(-1) ?? null);
    }
  }));
});

Deno.test("TokenSeries says the same of long lines, asked at any turn, and of branches out of their midst", () => {
  const own = fc.array(ids, { minLength: 70, maxLength: 200 });
  fc.assert(
    fc.property(own, fc.array(fc.nat(), { maxLength: 200 }), fc.nat(), own, (line, asked, from, branch) => {
      const grown = grow(line.map((own, parent) => ({ parent, own })));
      const asks = (count: number) => {
        for (const at of asked) {
          const { series, plain } = grown[at % count]!;
          assert.equal(jsonOf(series), plain.join(","));
        }
      };
      for (const count of grown.keys()) if (asked.includes(count)) asks(count + 1);
      for (const [k, own] of branch.entries()) {
        const before = k === 0 ? grown[from % line.length]! : grown.at(-1)!;
        grown.push({ series: before.series.append(own), plain: [...before.plain, ...own] });
        assert.equal(jsonOf(grown.at(-1)!.series), grown.at(-1)!.plain.join(","));
      }
      asks(grown.length);
    }),
    { numRuns: 60 },
  );
});

Deno.test("TokenSeries.of keeps the array it is given, and is EMPTY of no ids", () => {
  assert.equal(TokenSeries.of(new Uint32Array(0)), TokenSeries.EMPTY);
  assert.deepEqual([...TokenSeries.of(Uint32Array.of(3, 1)).toArray()], [3, 1]);
  assert.equal(TokenSeries.EMPTY.last(), null);
  assert.equal(jsonOf(TokenSeries.EMPTY), "");
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

Deno.test("TokenSeries.jsonBetween spells ids of a prefix out once", () => {
  let reads = 0;
  const first = new Proxy(Uint32Array.of(1, 2, 3), {
    get(target, name) {
      if (name === "0") reads++;
      return Reflect.get(target, name, target);
    },
  });
  let series = TokenSeries.of(first);
  jsonOf(series);
  const readsOnce = reads;
  assert.ok(readsOnce > 0);
  for (let turn = 0; turn < 20; turn++) {
    series = series.append(Uint32Array.of(turn)).append(Uint32Array.of(turn, turn));
    assert.equal(jsonOf(series).split(",").length, series.length);
  }
  assert.equal(reads, readsOnce);
});

Deno.test("TokenSeries.jsonBetween stands between texts of any characters, and gives an array of its own", () => {
  const series = TokenSeries.of(Uint32Array.of(0, 9, 10, 99, 100, 0xffffffff)).append(Uint32Array.of(7));
  const bytes = series.jsonBetween('{"ä":[', '],"€":1}');
  assert.equal(new TextDecoder().decode(bytes), '{"ä":[0,9,10,99,100,4294967295,7],"€":1}');
  bytes.fill(0);
  assert.equal(jsonOf(series), "0,9,10,99,100,4294967295,7");
});

Deno.test("TokenSeries.jsonBetween of a long chain needs no deep stack", () => {
  let series = TokenSeries.EMPTY;
  for (let id = 0; id < 50_000; id++) series = series.append(Uint32Array.of(id));
  assert.equal(jsonOf(series).length, series.toArray().join(",").length);
});

function jsonOf(series: TokenSeries): string {
  return new TextDecoder().decode(series.jsonBetween("", ""));
}

Deno.test("highest is the greatest id of the whole series, wherever it stands and in whatever order it is asked for", () => {
  fc.assert(fc.property(fc.array(fc.array(fc.nat(2 ** 32 - 1))), fc.array(fc.nat()), (parts, asked) => {
    const all: TokenSeries[] = [TokenSeries.EMPTY];
    for (const part of parts) all.push(all.at(-1)!.append(Uint32Array.from(part)));
    for (const at of [...asked.map((k) => k % all.length), ...all.keys()]) {
      assert.equal(all[at]!.highest, Math.max(-1, ...parts.slice(0, at).flat()));
    }
  }));
});
