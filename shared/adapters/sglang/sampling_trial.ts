/**
 * An engine whose sampling parameters arrive. Some routers drop those they do not know and say nothing; the answer would
 * then be sampled otherwise than its record says. It knows no wire: a parameter is tried by what it does.
 */

import { VerbatimError } from "../../core/errors.ts";
import type { SamplingParams } from "../../core/sampling.ts";
import { TokenSeries } from "../../core/token_series.ts";
import type { Finish } from "../../core/turn.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Engine } from "../../ports/engine.ts";
import type { Tokenizer } from "../../ports/tokenizer.ts";

/** What the trials need. */
export interface SamplingTrialOptions {
  readonly tokenizer: Pick<Tokenizer, "encode" | "decode">;
  readonly clock: Clock;
  /** A request id, as the engine port wants it. */
  readonly newRid: () => string;
}

/** A parameter that shows whether it arrived. */
type Tried = "structural_tag" | "logit_bias" | "stop_regex";

interface Trial {
  /** Sampling under which the parameter can't be overlooked. */
  readonly sampling: SamplingParams;
  /** Whether what was sampled followed it. */
  readonly followed: (ids: readonly number[], finish: Finish) => boolean;
}

interface Outcome {
  readonly followed: Promise<boolean>;
  /** Epoch milliseconds, once there is an outcome: from then on it is tried anew. */
  untilMs: number;
}

/** A router may be exchanged under its address. */
const ARRIVES_FOR_MS = 600_000;
const DROPPED_FOR_MS = 30_000;
/** Nothing that a model says by itself. */
const SAID = "verbatim-7f3a9c";
const BIAS = 1000;
const BIASED_TOKENS = 3;
const MOST_TOKENS = 24;
/** A weight update may take a trial away; a further one then waits for its end. */
const TRIES = 3;

/**
 * The engine with trials before it: the first request with a structural tag, a logit bias, a stop expression or custom
 * parameters waits until the parameter is known to arrive, which takes a call of a few tokens. Where it does not, the
 * request is `unsupported`. Outcomes are kept for minutes; failures of the engine are thrown as they are.
 */
export function withSamplingTrials(engine: Engine, options: SamplingTrialOptions): Engine {
  const { tokenizer, clock, newRid } = options;
  const outcomes = new Map<Tried, Outcome>();

  function trialOf(name: Tried): Trial {
    switch (name) {
      case "structural_tag": {
        const tag = { type: "structural_tag", format: { type: "const_string", value: SAID } };
        return {
          sampling: { structural_tag: JSON.stringify(tag), max_new_tokens: MOST_TOKENS },
          followed: (ids) => tokenizer.decode(ids, { skipSpecialTokens: true }) === SAID,
        };
      }
      case "logit_bias": {
        const id = tokenizer.encode(SAID)[0] ?? 0;
        return {
          sampling: { logit_bias: { [id]: BIAS }, max_new_tokens: BIASED_TOKENS },
          followed: (ids) => ids.length === BIASED_TOKENS && ids.every((sampled) => sampled === id),
        };
      }
      case "stop_regex":
        return {
          sampling: { stop_regex: ["[\\s\\S]"], ignore_eos: true, max_new_tokens: MOST_TOKENS },
          followed: (_ids, finish) => finish.type === "stop",
        };
    }
  }

  async function tryOut(name: Tried): Promise<boolean> {
    const { sampling, followed } = trialOf(name);
    const input = TokenSeries.of(tokenizer.encode("Hello"));
    for (let tries = 0; tries < TRIES; tries++) {
      const ids: number[] = [];
      const request = {
        rid: newRid(),
        input,
        sampling: { ...sampling, temperature: 0 },
        routingKey: null,
        stream: false,
      };
      // Callers may leave; whoever comes next wants to know as well.
      for await (const chunk of engine.generate(request, new AbortController().signal)) {
        if (chunk.type === "tokens") ids.push(...chunk.ids);
        if (chunk.type === "end") return followed(ids, chunk.finish);
      }
    }
    throw new VerbatimError("engine_unavailable", `The engine gave up every trial of ${name}`, { retryAfterS: 1 });
  }

  function outcomeOf(name: Tried): Promise<boolean> {
    const known = outcomes.get(name);
    if (known !== undefined && clock.now() < known.untilMs) return known.followed;
    const outcome: Outcome = { followed: tryOut(name), untilMs: Infinity };
    outcomes.set(name, outcome);
    outcome.followed.then(
      (followed) => outcome.untilMs = clock.now() + (followed ? ARRIVES_FOR_MS : DROPPED_FOR_MS),
      () => outcomes.delete(name),
    );
    return outcome.followed;
  }

  async function assertArrives(sampling: SamplingParams, signal: AbortSignal): Promise<void> {
    for (const [parameter, tried] of reliedOn(sampling)) {
      if (await beforeAbort(outcomeOf(tried), signal)) continue;
      throw new VerbatimError(
        "unsupported",
        `${parameter} does not reach the engine: a router that drops it, or an engine without it, would answer as if it had not been asked for`,
        { details: { field: parameter, reason: "dropped before the engine" } },
      );
    }
  }

  return {
    ...engine,
    async *generate(request, signal) {
      await assertArrives(request.sampling, signal);
      yield* engine.generate(request, signal);
    },
  };
}

/** The parameters of a request that may be dropped, and what each is tried by. */
function reliedOn(sampling: SamplingParams): [parameter: string, tried: Tried][] {
  const relied: [string, Tried][] = [];
  if (sampling.structural_tag) relied.push(["structural_tag", "structural_tag"]);
  if (Object.keys(sampling.logit_bias ?? {}).length > 0) relied.push(["logit_bias", "logit_bias"]);
  if ((sampling.stop_regex ?? []).length > 0) relied.push(["stop_regex", "stop_regex"]);
  // They do nothing by themselves. What passes a bias on passes on what it does not know; no router keeps one of the two.
  if (Object.keys(sampling.custom_params ?? {}).length > 0) relied.push(["custom_params", "logit_bias"]);
  return relied;
}

/** The value, unless the signal fires before it is there. */
async function beforeAbort<T>(value: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([value, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
