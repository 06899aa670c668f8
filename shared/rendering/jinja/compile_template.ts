/**
 * A Jinja template with Python's semantics, over the syntax tree of the JavaScript library, whose own evaluation differs from
 * Python's where chat templates notice it (`strip` with an argument, `True` and `None` as text, floats, undefined values).
 */

import { parse, tokenize } from "@huggingface/jinja";
import { compileBlock, rendered } from "./compile_block.ts";
import { defineGlobals, type TemplateHost } from "./globals.ts";
import { children, isNode } from "./nodes.ts";
import { Scope } from "./scope.ts";
import type { Text } from "./text.ts";
import { TemplateError, type Value } from "./values.ts";

export interface Template {
  /** The text. Raises what Jinja or Python would raise as a TemplateError. */
  render(variables: ReadonlyMap<string, Value>, host: TemplateHost): Text;
}

/** Compiles once what is rendered often. Raises for syntax, filters and tests that are not known. */
export function compileTemplate(source: string): Template {
  const program: unknown = parse(tokenize(source.replace(/\r\n?/g, "\n"), { lstrip_blocks: true, trim_blocks: true }));
  if (!isNode(program)) throw new TemplateError("the template has no syntax tree");
  const block = compileBlock(children(program, "body"));
  return {
    render(variables, host) {
      const scope = new Scope(null);
      defineGlobals(scope, host);
      for (const [name, value] of variables) scope.set(name, value);
      return rendered(block, scope);
    },
  };
}
