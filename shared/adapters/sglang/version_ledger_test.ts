import assert from "node:assert/strict";
import { VersionLedger } from "./version_ledger.ts";

Deno.test("VersionLedger knows of each worker that is called directly what it said last", () => {
  const ledger = new VersionLedger();
  const unknown = ledger.watch("a");
  ledger.note("a", "1");
  ledger.note("b", "2");
  assert.deepEqual([unknown.before, unknown.unchanged], [null, false]);
  const watch = ledger.watch("a");
  ledger.note("a", "1");
  ledger.note("b", "3");
  assert.deepEqual([watch.before, watch.unchanged], ["1", true]);
  ledger.note("a", "2");
  ledger.note("a", "1");
  assert.equal(watch.unchanged, false, "it was another one meanwhile");
  assert.equal(ledger.version(null), null);
});

Deno.test("VersionLedger knows a router's workers only where all were asked and agree, until one says otherwise", () => {
  const ledger = new VersionLedger();
  ledger.noteCommon("1");
  assert.equal(ledger.version(null), null, "some worker is not every worker");
  ledger.agree("1", ledger.notes);
  const watch = ledger.watch(null);
  ledger.noteCommon("1");
  assert.deepEqual([watch.before, watch.unchanged], ["1", true]);
  ledger.noteCommon("2");
  assert.deepEqual([watch.unchanged, ledger.version(null)], [false, null]);
  ledger.agree("2", ledger.notes);
  assert.equal(ledger.version(null), "2");
  ledger.forgetCommon();
  assert.equal(ledger.version(null), null);
});

Deno.test("VersionLedger keeps a version that is in doubt, and what was watched meanwhile does not count on it", () => {
  const ledger = new VersionLedger();
  for (const url of ["a", null]) {
    if (url === null) ledger.agree("1", ledger.notes);
    else ledger.note(url, "1");
    const watch = ledger.watch(url);
    ledger.doubt(url);
    assert.deepEqual([watch.unchanged, ledger.version(url), ledger.watch(url).unchanged], [false, "1", true]);
  }
});

Deno.test("VersionLedger does not take answers for an agreement that a reply has contradicted meanwhile", () => {
  const ledger = new VersionLedger();
  const { notes } = ledger;
  ledger.noteCommon("1");
  ledger.noteCommon("2");
  ledger.agree("1", notes);
  assert.equal(ledger.version(null), null);
  ledger.agree("1", ledger.notes);
  assert.equal(ledger.version(null), "1");
});
