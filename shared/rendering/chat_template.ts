/**
 * A chat template, compiled once. It knows nothing of tokens: values in, text out. What it refuses, and with which words,
 * is the template's own affair.
 */

import { VerbatimError } from "../core/errors.ts";
import { compileTemplate, type Template } from "./jinja/compile_template.ts";
import type { TemplateHost } from "./jinja/globals.ts";
import type { Text } from "./jinja/text.ts";
import { TemplateError, type Value } from "./jinja/values.ts";
import { strftime } from "./strftime.ts";

/** A template's variables; one that is not in it is undefined. */
export type TemplateVariables = ReadonlyMap<string, Value>;

export interface ChatTemplate {
  readonly source: string;
  /** The text. A conversation the template refuses is `invalid_request` with the template's words. */
  render(variables: TemplateVariables): Text;
}

export interface ChatTemplateOptions {
  /** Milliseconds since the epoch, for `strftime_now`; dates are UTC. */
  readonly now: () => number;
}

/** Compiles a template. One that can't be compiled is `not_ready`. */
export function compileChatTemplate(source: string, options: ChatTemplateOptions): ChatTemplate {
  const template = compiled(source);
  const host: TemplateHost = { refuse, formatNow: (format) => strftime(options.now(), format) };
  return {
    source,
    render(variables) {
      try {
        return template.render(variables, host);
      } catch (error) {
        if (!(error instanceof TemplateError)) throw error;
        throw new VerbatimError(
          "invalid_request",
          `The chat template can't render this conversation: ${error.message}.`,
          { details: { field: "messages", reason: error.message }, cause: error },
        );
      }
    },
  };
}

function compiled(source: string): Template {
  try {
    return compileTemplate(source);
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    throw new VerbatimError("not_ready", `The chat template can't be parsed: ${words}.`, { cause: error });
  }
}

function refuse(words: string): never {
  throw new VerbatimError("invalid_request", `The chat template refuses this conversation: ${words}`, {
    details: { field: "messages", reason: words },
  });
}
