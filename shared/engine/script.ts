/**
 * Scripted policies: when the conversation looks like this, say that. A script is data; what it says at a position
 * follows from the ids before the position alone, so force-decoding finds it again. It does not know of logits.
 */

import { VerbatimError } from "../core/errors.ts";
import type { Tokenizer } from "../ports/tokenizer.ts";
import { hashIds } from "./hashing.ts";

/** What a completion that depends on the conversation may look at. It must be a pure function of it. */
export interface ScriptContext {
  /** Text since the previous reply, up to the generation prompt: the newest messages. */
  readonly newest: string;
  /** Text in which the rule's trigger matched. */
  readonly trigger: string;
  /** Replies since the trigger matched, from 0: the index of this completion. */
  readonly turn: number;
}

/** One rule. */
export interface ScriptRule {
  /** Looked for in the text between the previous reply and a generation prompt (in the whole prompt at the first). */
  readonly match: string | RegExp;
  /** Said in turn, one a reply; each is followed by the stop token. After the last, the rule is silent. */
  readonly completions: readonly (string | ((context: ScriptContext) => string))[];
  /** Log odds of the script's next token against everything else, about. Default: the script's. */
  readonly sharpness?: number;
  /** Whether a later match starts the completions again. Default: only the first match counts. */
  readonly retrigger?: boolean;
}

/** Rules and how closely they are followed. */
export interface Script {
  readonly rules: readonly ScriptRule[];
  /** Default 24: a departure has a probability below 1e-9 a token at temperature 1. */
  readonly sharpness?: number;
}

/** What is to be said in one reply. */
export interface ScriptedReply {
  /** Its ids, the stop token last. */
  readonly ids: Uint32Array;
  readonly sharpness: number;
}

/** A stretch of conversation between two replies, by its ids. */
export interface ScriptSegment {
  /** Index of the generation prompt that ends it, from 0. */
  readonly index: number;
  readonly ids: Uint32Array;
}

const DEFAULT_SHARPNESS = 24;
/** Of a segment, the ids that rules look at: the last so many. */
const SEGMENT_IDS = 65536;
/** Cached segments and cached encodings. */
const MOST_CACHED = 8192;

/** A script made ready for one vocabulary. Shared by all requests; it holds caches, no state. */
export class CompiledScript {
  readonly #rules: readonly { rule: ScriptRule; test: (text: string) => boolean; sharpness: number }[];
  readonly #tokenizer: Tokenizer;
  readonly #stopId: number;
  readonly #matches = new Map<string, readonly boolean[]>();
  readonly #encoded = new Map<string, Uint32Array>();

  /** A rule without completions is refused. */
  constructor(script: Script, { tokenizer, stopId }: { tokenizer: Tokenizer; stopId: number }) {
    this.#tokenizer = tokenizer;
    this.#stopId = stopId;
    this.#rules = script.rules.map((rule, index) => {
      if (rule.completions.length === 0) {
        throw new VerbatimError("invalid_request", `Script rule ${index} has no completions; give at least one.`);
      }
      return { rule, test: matcher(rule.match), sharpness: rule.sharpness ?? script.sharpness ?? DEFAULT_SHARPNESS };
    });
  }

  /** A reader for one sequence of segments. */
  reader(): ScriptReader {
    return new ScriptReader(this);
  }

  /** Number of rules. */
  get size(): number {
    return this.#rules.length;
  }

  /** The rule's own data. */
  ruleAt(index: number): ScriptRule {
    return this.#rules[index]!.rule;
  }

  /** Which rules match this segment. */
  matches(ids: Uint32Array): readonly boolean[] {
    const key = hashIds(ids);
    const cached = this.#matches.get(key);
    if (cached !== undefined) return cached;
    const text = this.text(ids);
    const found = this.#rules.map(({ test }) => test(text));
    remember(this.#matches, key, found);
    return found;
  }

  /** The text that rules see of a segment. */
  text(ids: Uint32Array): string {
    return this.#tokenizer.decode(ids.length > SEGMENT_IDS ? ids.subarray(ids.length - SEGMENT_IDS) : ids);
  }

  /** The reply of a rule as ids. */
  reply(index: number, context: ScriptContext): ScriptedReply {
    const { rule, sharpness } = this.#rules[index]!;
    const completion = rule.completions[context.turn]!;
    const text = typeof completion === "string" ? completion : completion(context);
    let ids = this.#encoded.get(text);
    if (ids === undefined) {
      const body = this.#tokenizer.encode(text, { addSpecialTokens: false });
      ids = new Uint32Array(body.length + 1);
      ids.set(body);
      ids[body.length] = this.#stopId;
      remember(this.#encoded, text, ids);
    }
    return { ids, sharpness };
  }
}

/** Follows one prefix from generation prompt to generation prompt and says which reply is due. */
export class ScriptReader {
  readonly #script: CompiledScript;
  readonly #triggers: (ScriptSegment | null)[];

  /** Made by `CompiledScript.reader`. */
  constructor(script: CompiledScript) {
    this.#script = script;
    this.#triggers = new Array<ScriptSegment | null>(script.size).fill(null);
  }

  /**
   * The reply due after this segment, or null. Segments must come in order. Of the rules that are triggered and not
   * used up the one triggered last speaks, the earlier in the list where two were triggered together.
   */
  next(segment: ScriptSegment): ScriptedReply | null {
    const matches = this.#script.matches(segment.ids);
    let speaker = -1;
    for (let rule = 0; rule < this.#triggers.length; rule++) {
      const triggered = this.#triggers[rule] ?? null;
      const { retrigger, completions } = this.#script.ruleAt(rule);
      if (matches[rule] && (triggered === null || retrigger === true)) {
        this.#triggers[rule] = { index: segment.index, ids: segment.ids.slice() };
      }
      const trigger = this.#triggers[rule];
      if (!trigger || segment.index - trigger.index >= completions.length) continue;
      if (speaker < 0 || trigger.index > this.#triggers[speaker]!.index) speaker = rule;
    }
    if (speaker < 0) return null;
    const trigger = this.#triggers[speaker]!;
    const script = this.#script;
    // Texts are decoded only for a completion that looks at them.
    return script.reply(speaker, {
      turn: segment.index - trigger.index,
      get newest() {
        return script.text(segment.ids);
      },
      get trigger() {
        return script.text(trigger.ids);
      },
    });
  }
}

function matcher(match: string | RegExp): (text: string) => boolean {
  if (typeof match === "string") return (text) => text.includes(match);
  // A global or sticky expression remembers where it stopped; a rule must not.
  const expression = new RegExp(match.source, match.flags.replace(/[gy]/g, ""));
  return (text) => expression.test(text);
}

function remember<Value>(cache: Map<string, Value>, key: string, value: Value): void {
  if (cache.size >= MOST_CACHED) {
    const oldest = cache.keys().next();
    if (!oldest.done) cache.delete(oldest.value);
  }
  cache.set(key, value);
}
