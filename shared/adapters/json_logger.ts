/** Log lines as JSON, one a line, on standard error: standard output belongs to commands that print results. */

import type { Logger } from "../ports/logger.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;

/** A logger that writes lines at or above `level`. `write` gets each line without its newline. */
export function createJsonLogger(options: {
  level: typeof LEVELS[number];
  now: () => number;
  write: (line: string) => void;
}): Logger {
  function at(level: typeof LEVELS[number]): Logger["info"] {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(options.level)) return () => {};
    return (message, fields = {}) => {
      const line = { time: new Date(options.now()).toISOString(), level, message };
      options.write(textOf({ ...line, ...fields, ...line }) ?? JSON.stringify({ ...line, fields: "not JSON" }));
    };
  }
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** The line, or null where a field can't be written (a cycle, a bigint): a log line is never why a call fails. */
function textOf(line: Record<string, unknown>): string | null {
  try {
    return JSON.stringify(line);
  } catch {
    return null;
  }
}
