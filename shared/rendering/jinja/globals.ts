/** The functions that every chat template may call, as `transformers` provides them. */

import { bind, integerArgument, textArgument } from "./arguments.ts";
import { iterate, sequenceItems } from "./operators.ts";
import { toText } from "./representation.ts";
import type { Scope } from "./scope.ts";
import { isText, plain } from "./text.ts";
import { type Arguments, Callable, Dict, Namespace, TemplateError, type Value } from "./values.ts";

export interface TemplateHost {
  /** What `raise_exception` does with the template's words. */
  readonly refuse: (words: string) => never;
  /** The date in a format of Python's `strftime`. */
  readonly formatNow: (format: string) => string;
}

const MAX_RANGE = 100_000;

export function defineGlobals(scope: Scope, host: TemplateHost): void {
  const define = (name: string, body: (given: Arguments) => Value) => scope.set(name, new Callable(name, body));
  define(
    "raise_exception",
    (given) => host.refuse(plain(toText(bind("raise_exception", given, ["message"])[0] ?? null))),
  );
  define("strftime_now", (given) => {
    return host.formatNow(plain(textArgument("strftime_now", bind("strftime_now", given, ["format"])[0])));
  });
  define("range", range);
  define("namespace", (given) => new Namespace(entriesOf(given)));
  define("dict", (given) => new Dict(entriesOf(given)));
}

function range(given: Arguments): Value {
  const [first, second, third] = bind("range", given, ["start", "stop", "step"]);
  const start = second === undefined ? 0 : integerArgument("range", first, 0);
  const stop = integerArgument("range", second ?? first, 0);
  const step = integerArgument("range", third, 1);
  if (step === 0) throw new TemplateError("range() arg 3 must not be zero");
  if (Math.abs((stop - start) / step) > MAX_RANGE) {
    throw new TemplateError(`Range too big. The sandbox blocks ranges larger than MAX_RANGE (${MAX_RANGE}).`);
  }
  const numbers: Value[] = [];
  for (let value = start; step > 0 ? value < stop : value > stop; value += step) numbers.push(value);
  return numbers;
}

/** What `dict(...)` takes: a mapping or pairs, then names. */
function entriesOf({ positional, named }: Arguments): Map<string, Value> {
  const entries = new Map<string, Value>();
  const [source] = positional;
  if (source instanceof Dict) { for (const [key, value] of source.entries) entries.set(key, value); }
  else if (source !== undefined) {
    for (const pair of iterate(source)) {
      const [key, value] = sequenceItems(pair) ?? [];
      if (key === undefined || value === undefined || !isText(key)) {
        throw new TemplateError("pairs of key and value are wanted");
      }
      entries.set(plain(key), value);
    }
  }
  for (const [key, value] of named) entries.set(key, value);
  return entries;
}
