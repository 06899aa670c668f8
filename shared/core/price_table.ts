/** What tokens cost at the APIs of model makers, and what a call cost. Prices are those listed in August 2025; a configured price goes before. */

/** US dollars per million tokens. */
export interface TokenPrice {
  /** Of the prompt, where it was not cached. */
  readonly input: number;
  /** Of the prompt, where it was. */
  readonly cachedInput: number;
  /** Of the reply, its reasoning included. */
  readonly output: number;
}

/** Tokens of one call. */
export interface TokenUsage {
  /** The whole prompt. */
  readonly promptTokens: number;
  /** Those of the prompt that were cached; null where that is not told: none. */
  readonly cachedTokens: number | null;
  /** The reply, its reasoning included. */
  readonly completionTokens: number;
}

const MILLION = 1e6;
/** Releases of a model are called after their day. */
const RELEASE_DAY = /-\d{4}-\d{2}-\d{2}$/;

const PRICES: Readonly<Record<string, TokenPrice>> = {
  "gpt-5": { input: 1.25, cachedInput: 0.125, output: 10 },
  "gpt-5-mini": { input: 0.25, cachedInput: 0.025, output: 2 },
  "gpt-5-nano": { input: 0.05, cachedInput: 0.005, output: 0.4 },
  "gpt-4.1": { input: 2, cachedInput: 0.5, output: 8 },
  "gpt-4.1-mini": { input: 0.4, cachedInput: 0.1, output: 1.6 },
  "gpt-4.1-nano": { input: 0.1, cachedInput: 0.025, output: 0.4 },
  "gpt-4o": { input: 2.5, cachedInput: 1.25, output: 10 },
  "gpt-4o-mini": { input: 0.15, cachedInput: 0.075, output: 0.6 },
  "o3": { input: 2, cachedInput: 0.5, output: 8 },
  "o4-mini": { input: 1.1, cachedInput: 0.275, output: 4.4 },
};

/** The price of a model by its maker's name for it, or null where the table has none. */
export function listedPrice(model: string): TokenPrice | null {
  const name = model.replace(RELEASE_DAY, "");
  return Object.hasOwn(PRICES, name) ? PRICES[name]! : null;
}

/** What a call cost, in US dollars; null where the price is not known, which is not nothing. */
export function costUsd(usage: TokenUsage, price: TokenPrice | null): number | null {
  if (price === null) return null;
  const cached = Math.min(usage.cachedTokens ?? 0, usage.promptTokens);
  const uncached = usage.promptTokens - cached;
  return (uncached * price.input + cached * price.cachedInput + usage.completionTokens * price.output) / MILLION;
}
