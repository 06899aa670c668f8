import assert from "node:assert/strict";
import { createJsonLogger } from "./json_logger.ts";

type Level = Parameters<typeof createJsonLogger>[0]["level"];

function logged(level: Level, use: (logger: ReturnType<typeof createJsonLogger>) => void): string[] {
  const lines: string[] = [];
  use(createJsonLogger({ level, now: () => 0, write: (line) => lines.push(line) }));
  return lines;
}

Deno.test("createJsonLogger writes one JSON line a message, its fields beside it", () => {
  const lines = logged("info", (logger) => {
    logger.warn("Line\nbreak", { code: "busy", nested: { a: [1, null] }, none: undefined });
    logger.info("No fields");
  });
  assert.deepEqual(lines, [
    '{"time":"1970-01-01T00:00:00.000Z","level":"warn","message":"Line\\nbreak","code":"busy","nested":{"a":[1,null]}}',
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","message":"No fields"}',
  ]);
});

Deno.test("createJsonLogger writes what is at or above its level", () => {
  const levels: Level[] = ["debug", "info", "warn", "error"];
  levels.forEach((level, index) => {
    const lines = logged(level, (logger) => levels.forEach((each) => logger[each](each)));
    assert.deepEqual(lines.map((line) => JSON.parse(line).message), levels.slice(index));
  });
});

Deno.test("createJsonLogger lets no field take the place of time, level or message", () => {
  const [line] = logged("debug", (logger) => logger.debug("said", { message: "other", level: "error", time: 5 }));
  assert.equal(line, '{"time":"1970-01-01T00:00:00.000Z","level":"debug","message":"said"}');
});

Deno.test("createJsonLogger says the message even where a field is no JSON", () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  for (const field of [cycle, 5n]) {
    const [line] = logged("debug", (logger) => logger.error("said", { field }));
    assert.deepEqual(JSON.parse(line!), {
      time: "1970-01-01T00:00:00.000Z",
      level: "error",
      message: "said",
      fields: "not JSON",
    });
  }
});
