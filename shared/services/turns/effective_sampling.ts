/** Which sampling holds for a call, and what of the agent's wishes came to nothing. */

import type { SamplingParams } from "../../core/sampling.ts";
import type { TaskSettings } from "../../core/task.ts";

/** What holds in a capture task unless the task fixes something else: the raw distribution, whole. */
const CAPTURE_DEFAULTS: SamplingParams = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  frequency_penalty: 0,
  presence_penalty: 0,
  repetition_penalty: 1,
};

/**
 * An agent may always stop early, and ask for calls or JSON that must come: it would break without. A grammar changes
 * what a logprob is a logprob of, and the turn's basis says so.
 */
const ALWAYS_AGENTS: ReadonlySet<string> = new Set(["stop", "max_new_tokens", "json_schema", "structural_tag"]);

/** The sampling of a call and the wishes that had no effect, by SGLang's names. */
export interface EffectiveSampling {
  readonly sampling: SamplingParams;
  readonly ignored: readonly string[];
}

/**
 * In a capture task the defaults hold, then what the task fixes; the agent may set stop strings, a token limit (the
 * lower one counts) and what the task lets it set. Without capture the agent's wishes hold wherever the task fixes nothing.
 */
export function effectiveSampling(
  settings: Pick<TaskSettings, "capture" | "fixedSampling" | "agentMaySet"> | null,
  wished: SamplingParams,
): EffectiveSampling {
  if (settings === null) return { sampling: { ...wished }, ignored: [] };
  const { capture, fixedSampling } = settings;
  const held: SamplingParams = capture ? { ...CAPTURE_DEFAULTS, ...fixedSampling } : fixedSampling;
  const allowed: SamplingParams = {};
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(wished)) {
    if (value === undefined) continue;
    const isAgents = ALWAYS_AGENTS.has(name) || settings.agentMaySet.includes(name) ||
      (!capture && !(name in fixedSampling));
    if (isAgents) Object.assign(allowed, { [name]: value });
    else if (JSON.stringify(value) !== JSON.stringify(held[name as keyof SamplingParams])) ignored.push(name);
  }
  const sampling: SamplingParams = { ...held, ...allowed };
  const limits = [fixedSampling.max_new_tokens, wished.max_new_tokens].filter((limit) => limit !== undefined);
  if (limits.length > 0) sampling.max_new_tokens = Math.min(...limits);
  const stops = [...fixedSampling.stop ?? [], ...wished.stop ?? []];
  if (stops.length > 0) sampling.stop = [...new Set(stops)];
  return { sampling, ignored };
}
