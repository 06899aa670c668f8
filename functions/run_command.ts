/** Runs a command's main function: what stops it is told to the operator in a sentence, not as a stack. */

import { VerbatimError } from "../shared/core/errors.ts";

/** Runs to the end; an error with words of its own exits with 1, anything else is thrown on. */
export async function runCommand(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (cause) {
    if (!(cause instanceof VerbatimError)) throw cause;
    const why = cause.cause instanceof Error ? ` (${cause.cause.message})` : "";
    await Deno.stderr.write(new TextEncoder().encode(`${cause.message}${why}\n`));
    Deno.exit(1);
  }
}
