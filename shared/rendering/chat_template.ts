/**
 * A chat template, compiled once. It knows nothing of tokens: values in, text out. What it refuses, and with which words,
 * is the template's own affair.
 */

import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { VerbatimError } from "../core/errors.ts";
import { strftime } from "./strftime.ts";

/** A variable of a template: JSON, or undefined for one that is not defined. */
export type TemplateVariables = { readonly [name: string]: unknown };

export interface ChatTemplate {
  readonly source: string;
  /** The text. A conversation the template refuses is `invalid_request` with the template's words. */
  render(variables: TemplateVariables): string;
}

export interface ChatTemplateOptions {
  /** Milliseconds since the epoch, for `strftime_now`; dates are UTC. */
  readonly now: () => number;
}

/** Compiles a template. One that can't be parsed is `not_ready`. */
export function compileChatTemplate(source: string, options: ChatTemplateOptions): ChatTemplate {
  const program = parseTemplate(source);
  return {
    source,
    render(variables) {
      const environment = new Environment();
      environment.set("true", true);
      environment.set("false", false);
      environment.set("none", null);
      environment.set("True", true);
      environment.set("False", false);
      environment.set("None", null);
      environment.set("raise_exception", refuse);
      environment.set("range", range);
      environment.set("strftime_now", (format: string) => strftime(options.now(), format));
      for (const [name, value] of Object.entries(variables)) environment.set(name, value);
      try {
        return String(new Interpreter(environment).run(program).value);
      } catch (error) {
        if (error instanceof VerbatimError) throw error;
        const words = error instanceof Error ? error.message : String(error);
        throw new VerbatimError("invalid_request", `The chat template can't render this conversation: ${words}.`, {
          details: { field: "messages", reason: words },
          cause: error,
        });
      }
    },
  };
}

function parseTemplate(source: string): ReturnType<typeof parse> {
  try {
    return parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    throw new VerbatimError("not_ready", `The chat template can't be parsed: ${words}.`, { cause: error });
  }
}

function refuse(words: unknown): never {
  throw new VerbatimError("invalid_request", `The chat template refuses this conversation: ${words}`, {
    details: { field: "messages", reason: String(words) },
  });
}

/** Python's `range`, bounded: no template needs more. */
function range(start: number, stop?: number, step = 1): number[] {
  const [first, end] = stop === undefined ? [0, start] : [start, stop];
  const numbers: number[] = [];
  if (step === 0) throw new VerbatimError("invalid_request", "The chat template calls range() with a step of 0.");
  for (let value = first; step > 0 ? value < end : value > end; value += step) {
    if (numbers.length === 100_000) {
      throw new VerbatimError("invalid_request", "The chat template calls range() for over 100000 numbers.");
    }
    numbers.push(value);
  }
  return numbers;
}
