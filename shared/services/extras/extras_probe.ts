/**
 * Whether an engine says what a task wants of it beside tokens, found out by asking it: routers drop fields they do not
 * know, and engines leave out what they were not started for. What was found is kept.
 */

import { expertsWidth } from "../../core/extra_arrays.ts";
import { VerbatimError } from "../../core/errors.ts";
import { TokenSeries } from "../../core/token_series.ts";
import { EXTRA_NAMES, type ExtraName, isMissing } from "../../core/turn_extras.ts";
import type { Clock } from "../../ports/clock.ts";
import type { EngineExtras, ExtrasAsked } from "../../ports/engine.ts";
import type { Ids } from "../../ports/ids.ts";
import type { Model } from "../model_catalog.ts";

/** Extras that need the engine to say more than it does anyhow. */
export type AskedExtra = Exclude<ExtraName, "prefix_cache_info">;

/** What one probe found. */
type Finding =
  /** `width`: values of a row of experts, else 0. */
  | { readonly kind: "said"; readonly width: number }
  | { readonly kind: "not_said"; readonly reason: string };

const ASKING: Readonly<Record<AskedExtra, ExtrasAsked>> = {
  routed_experts: { expertsFrom: 0 },
  top_p_ids: { topPIds: true },
  spec_info: { specInfo: true },
};

/** Tokens that a probe samples: the first of a reply takes no round of speculation. */
const PROBE_TOKENS = 8;
const PROBE_TIMEOUT_MS = 30_000;
/** When a caller may try again that wants to know it during a pause. */
const PAUSED_RETRY_S = 5;
/** How long an engine that did not say it is believed not to: it may be started anew. */
const REFUSED_MS = 60_000;

/** Probes the engines of this process. */
export class ExtrasProbe {
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #findings = new Map<string, { readonly finding: Promise<Finding>; untilMs: number }>();

  constructor({ clock, ids }: { readonly clock: Clock; readonly ids: Ids }) {
    this.#clock = clock;
    this.#ids = ids;
  }

  /** Refuses (`unsupported`) what the model's engine is known not to say. An engine that can't be asked is its own error. */
  async assertSaid(model: Model, extras: readonly ExtraName[]): Promise<void> {
    for (const extra of extras) {
      if (extra === "prefix_cache_info") continue;
      const finding = await this.#found(model, extra);
      if (finding.kind === "said") continue;
      const reason = `${extra}: ${finding.reason}`;
      throw new VerbatimError("unsupported", `Field "capture_extras": ${reason}`, {
        details: { field: "capture_extras", reason },
      });
    }
  }

  /** Values of a row of experts; null where the engine does not say its experts, or can't be asked now. */
  async expertsWidth(model: Model): Promise<number | null> {
    try {
      const finding = await this.#found(model, "routed_experts");
      return finding.kind === "said" ? finding.width : null;
    } catch (cause) {
      if (cause instanceof VerbatimError) return null;
      throw cause;
    }
  }

  /** Asks anew when it is next needed. */
  forget(model: Model): void {
    for (const extra of EXTRA_NAMES) this.#findings.delete(`${model.name}\0${extra}`);
  }

  #found(model: Model, extra: AskedExtra): Promise<Finding> {
    const key = `${model.name}\0${extra}`;
    const known = this.#findings.get(key);
    if (known !== undefined && this.#clock.now() < known.untilMs) return known.finding;
    if (model.generations.gate.paused) {
      const why = "The engines are paused: what they say beside tokens can't be found out now";
      return Promise.reject(new VerbatimError("busy", why, { retryAfterS: PAUSED_RETRY_S }));
    }
    const finding = this.#probe(model, extra);
    const kept = { finding, untilMs: Infinity };
    this.#findings.set(key, kept);
    finding.then(({ kind }) => {
      if (kind === "not_said") kept.untilMs = this.#clock.now() + REFUSED_MS;
    }, () => {
      kept.untilMs = -Infinity;
    });
    return finding;
  }

  async #probe(model: Model, extra: AskedExtra): Promise<Finding> {
    const { tokenizer } = model.renderer;
    const request = {
      rid: this.#ids.uuid(),
      input: TokenSeries.of(tokenizer.encode("How do you do?", { addSpecialTokens: false })),
      // Without a cut there is nothing to say of top-p.
      sampling: { max_new_tokens: PROBE_TOKENS, temperature: 1, top_p: 0.9, ignore_eos: true },
      routingKey: null,
      stream: false,
      extras: ASKING[extra],
    };
    const timeout = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    let said: EngineExtras | null = null;
    try {
      for await (const chunk of model.engine.generate(request, timeout)) {
        if (chunk.type === "end") said = chunk.extras ?? {};
      }
    } catch (cause) {
      if (timeout.aborted) throw new VerbatimError("engine_timeout", "The engine did not answer a probe", { cause });
      const refusal = refusedWith(cause);
      if (refusal === null) throw cause;
      return { kind: "not_said", reason: `the engine refuses it: ${refusal}` };
    }
    if (said === null) throw new VerbatimError("engine_unavailable", "The engine gave a probe up", { retryAfterS: 1 });
    const { experts, topPIds, specInfo } = said;
    const found = experts ?? topPIds ?? specInfo ?? { missing: "dropped" };
    if (isMissing(found)) {
      const reason = found.missing === "dropped"
        ? "the engine's answer does not hold it, or a router before it drops the field"
        : "what the engine's answer holds does not fit its tokens";
      return { kind: "not_said", reason };
    }
    return { kind: "said", width: experts === undefined || isMissing(experts) ? 0 : expertsWidth(experts) };
  }
}

/** What an engine said that took the request for a bad one, or null. */
function refusedWith(cause: unknown): string | null {
  if (!(cause instanceof VerbatimError) || cause.code !== "engine_failed") return null;
  const { engine_status: status, engine_message: message } = cause.details ?? {};
  return status === 400 && typeof message === "string" ? message : null;
}
