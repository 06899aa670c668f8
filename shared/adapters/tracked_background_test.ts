import assert from "node:assert/strict";
import { eventLoopTurn } from "../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../tests/fixtures/list_logger.ts";
import { createTrackedBackground } from "./tracked_background.ts";

Deno.test("createTrackedBackground is idle once all work has ended, work begun by work included", async () => {
  const background = createTrackedBackground(createListLogger());
  await background.idle();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  background.run("first", first.promise.then(() => background.run("second", second.promise)));
  let idle = false;
  const waiting = background.idle().then(() => idle = true);
  first.resolve();
  await eventLoopTurn();
  assert.equal(idle, false);
  second.resolve();
  await waiting;
});

Deno.test("createTrackedBackground logs what fails under its label, and goes on", async () => {
  const logger = createListLogger();
  const background = createTrackedBackground(logger);
  background.run("note", Promise.reject(new Error("inner")));
  background.run("odd", Promise.reject("text"));
  background.run("good", Promise.resolve(5));
  await background.idle();
  assert.deepEqual(logger.lines.map(({ level, fields }) => [level, fields.label]), [["error", "note"], [
    "error",
    "odd",
  ]]);
  assert.match(String(logger.lines[0]?.fields.cause), /^Error: inner\n/);
  assert.equal(logger.lines[1]?.fields.cause, "text");
});

Deno.test("createTrackedBackground hands the work to the host's own hook, as work that never fails", async () => {
  const kept: Promise<unknown>[] = [];
  const background = createTrackedBackground(createListLogger(), (work) => kept.push(work));
  background.run("fails", Promise.reject(new Error("inner")));
  background.run("good", Promise.resolve());
  assert.equal(kept.length, 2);
  await Promise.all(kept);
  await background.idle();
});
