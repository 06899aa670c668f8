import assert from "node:assert/strict";
import { PgOrder } from "./pg_order.ts";

Deno.test("PgOrder runs work of one name in its order, whatever fails, and of others meanwhile", async () => {
  const order = new PgOrder();
  const ends: (() => void)[] = [];
  const log: string[] = [];
  const first = order.run("a", async () => {
    log.push("first");
    await new Promise<void>((resolve) => ends.push(resolve));
    throw new Error("failed");
  });
  const second = order.run("a", () => Promise.resolve(log.push("second")));
  const third = order.run("a", () => Promise.resolve(log.push("third")));
  await order.run("b", () => Promise.resolve(log.push("other")));
  assert.deepEqual(log, ["first", "other"]);
  ends[0]!();
  await assert.rejects(first, { message: "failed" });
  assert.deepEqual(await Promise.all([second, third]), [3, 4]);
  assert.deepEqual(log, ["first", "other", "second", "third"]);
  await order.run("a", () => Promise.resolve(log.push("later")));
});
