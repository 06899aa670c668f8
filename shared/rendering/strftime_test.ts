import assert from "node:assert/strict";
import { strftime } from "./strftime.ts";

Deno.test("strftime writes dates as Python does, in UTC and English", () => {
  const time = Date.UTC(2025, 0, 5, 13, 7, 9);
  assert.equal(strftime(time, "%Y-%m-%d %H:%M:%S"), "2025-01-05 13:07:09");
  assert.equal(strftime(time, "%A, %B %-d, %Y"), "Sunday, January 5, 2025");
  assert.equal(strftime(time, "%d %b %y %a"), "05 Jan 25 Sun");
  assert.equal(strftime(time, "%I:%M %p %Z 100%%"), "01:07 PM UTC 100%");
  assert.equal(strftime(Date.UTC(2025, 0, 5), "%I %p"), "12 AM");
});

Deno.test("strftime refuses what it does not know", () => {
  assert.throws(() => strftime(0, "%U"), { code: "unsupported" });
  assert.throws(() => strftime(0, "50%"), { code: "unsupported" });
});
