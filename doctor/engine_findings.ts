/** Whether an engine has the same tokens as the renderer, and whether its sampled and force-decoded logprobs agree. */

import type { Message } from "../shared/core/message.ts";
import { TokenSeries } from "../shared/core/token_series.ts";
import type { Engine } from "../shared/ports/engine.ts";
import type { Renderer } from "../shared/ports/renderer.ts";
import { tokenDifference } from "../shared/rendering/token_difference.ts";
import { failed, type Finding, wordsOf } from "./finding.ts";
import { PROBE_TEXTS, PROBE_TOOL, probeQuestion } from "./probe_conversation.ts";

/** An engine, and its `/tokenize`. */
export interface DoctorEngine {
  readonly engine: Engine;
  /** The ids of a text, or of messages in the engine's own rendering; null where the engine does not serve it. */
  tokenize(body: { readonly [name: string]: unknown }): Promise<number[] | null>;
}

const SAMPLED = 24;
/** Decoding and prefill sum in another order; what is beyond this is another model or another position. */
const TOLERANCE = 0.25;
const CALL_MS = 60_000;

/** One finding a comparison. */
export async function engineFindings(renderer: Renderer, engine: DoctorEngine): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (
    const [name, look] of [
      ["the engine answers", () => information(renderer, engine)],
      ["the engine's ids of a prompt", () => comparePrompt(renderer, engine)],
      ["the engine's ids of many kinds of text", () => compareTexts(renderer, engine)],
      ["the engine's own rendering of messages", () => compareMessages(renderer, engine)],
      ["sampled and force-decoded logprobs", () => roundTrip(renderer, engine)],
    ] as const
  ) {
    try {
      findings.push({ name, ...await look() });
    } catch (error) {
      findings.push(failed(name, wordsOf(error)));
    }
  }
  return findings;
}

type Looked = Omit<Finding, "name">;

function told(verdict: Finding["verdict"], note: string): Looked {
  return { verdict, note };
}

async function information(_renderer: Renderer, { engine }: DoctorEngine): Promise<Looked> {
  const { modelPath, weightVersion } = await engine.info(AbortSignal.timeout(CALL_MS));
  return told("passed", `${modelPath ?? "a model without a name"}, weights ${weightVersion ?? "unknown"}`);
}

async function comparePrompt(renderer: Renderer, engine: DoctorEngine): Promise<Looked> {
  const tools = renderer.toolCallParser === null ? [] : [PROBE_TOOL];
  const { ids } = await renderer.renderPrompt({ messages: [probeQuestion()], tools, settings: {} });
  const found = await engine.tokenize({ prompt: renderer.tokenizer.decode(ids), add_special_tokens: false });
  if (found === null) return told("not checked", "the engine has no /tokenize");
  const difference = tokenDifference(renderer.tokenizer, found, ids);
  return difference === null ? told("passed", `${ids.length} tokens`) : told("failed", `the engine's ${difference}`);
}

async function compareTexts({ tokenizer }: Renderer, engine: DoctorEngine): Promise<Looked> {
  for (const text of PROBE_TEXTS) {
    const found = await engine.tokenize({ prompt: text, add_special_tokens: false });
    if (found === null) return told("not checked", "the engine has no /tokenize");
    const difference = tokenDifference(tokenizer, found, tokenizer.encode(text));
    if (difference !== null) {
      return told("failed", `of ${JSON.stringify(text.slice(0, 60))} the engine's ${difference}`);
    }
  }
  return told("passed", `${PROBE_TEXTS.length} texts`);
}

/** The engine may have another template on purpose, so a difference here is told, and fails nothing. */
async function compareMessages(renderer: Renderer, engine: DoctorEngine): Promise<Looked> {
  const messages: Message[] = [probeQuestion()];
  const { ids } = await renderer.renderPrompt({ messages, tools: [], settings: {} });
  const found = await engine.tokenize({
    messages: messages.map(({ role, content }) => ({ role, content })),
    add_special_tokens: false,
  });
  if (found === null) return told("not checked", "the engine does not render messages");
  const difference = tokenDifference(renderer.tokenizer, found, ids);
  if (difference === null) return told("passed", `${ids.length} tokens`);
  return told("not checked", `it renders with another template or other settings: the engine's ${difference}`);
}

async function roundTrip(renderer: Renderer, { engine }: DoctorEngine): Promise<Looked> {
  const { ids } = await renderer.renderPrompt({ messages: [probeQuestion()], tools: [], settings: {} });
  const sampled: number[] = [];
  const logprobs: number[] = [];
  const request = {
    rid: crypto.randomUUID().replaceAll("-", ""),
    input: TokenSeries.of(ids),
    sampling: { max_new_tokens: SAMPLED, temperature: 0, stop_token_ids: [...renderer.stopTokenIds] },
    routingKey: null,
    stream: false,
  };
  for await (const chunk of engine.generate(request, AbortSignal.timeout(CALL_MS))) {
    if (chunk.type !== "tokens") continue;
    sampled.push(...chunk.ids);
    logprobs.push(...chunk.logprobs);
  }
  if (sampled.length === 0) return told("failed", "the engine samples nothing after the prompt");
  const scores = await engine.score({
    rid: crypto.randomUUID().replaceAll("-", ""),
    prompt: ids,
    response: Uint32Array.from(sampled),
  }, AbortSignal.timeout(CALL_MS));
  const differences = logprobs.map((logprob, index) => Math.abs(logprob - (scores[index] ?? NaN)));
  const largest = Math.max(...differences);
  const at = differences.indexOf(largest);
  const note = `${sampled.length} tokens, largest difference ${largest.toPrecision(3)}`;
  // NaN fails.
  if (largest <= TOLERANCE) return told("passed", note);
  return told(
    "failed",
    `${note}: token ${at}, ${JSON.stringify(renderer.tokenizer.decode([sampled[at] ?? 0]))}, was sampled with ${
      logprobs[at]
    } and is scored ${scores[at]}`,
  );
}
