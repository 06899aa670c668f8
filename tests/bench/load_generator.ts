/** Agents at work: so many at once, each sending its next turn as soon as the last one is answered. */

import type { AgentConversation, ServedMessage } from "./agent_conversation.ts";
import type { BenchTarget } from "./bench_targets.ts";
import { type ProcessUsage, readUsage } from "./process_usage.ts";

/** An agent with its task. */
export interface BenchSession {
  readonly key: string;
  readonly conversation: AgentConversation;
}

/** What one slice of load came to. */
export interface Slice {
  /** Time of each answered turn. */
  readonly turnMs: readonly number[];
  /** Prompt tokens of each, where the target counts them. */
  readonly promptTokens: readonly number[];
  /** Bytes of each request's body. */
  readonly requestBytes: readonly number[];
  readonly elapsedMs: number;
  /** CPU time the target used; null where the system does not tell. */
  readonly targetCpuMs: number | null;
  /** CPU time this process used. */
  readonly ownCpuMs: number | null;
  readonly failures: readonly string[];
}

/** How much load. */
export interface Load {
  /** Agents at work at once. */
  readonly sessions: number;
  readonly turns: number;
  /** No turn is begun after this long. */
  readonly mostMs?: number;
  /** Requests a conversation may reach. */
  readonly requestsPerTask: number;
  readonly signal: AbortSignal;
}

const SLICE_TIMEOUT_MS = 60_000;

/** Runs turns on these conversations. An agent keeps one until it is used up, then takes the least used that is free. */
export async function runTurns(target: BenchTarget, pool: readonly BenchSession[], load: Load): Promise<Slice> {
  const signal = AbortSignal.any([load.signal, AbortSignal.timeout(SLICE_TIMEOUT_MS)]);
  const free = new Set(pool);
  const turnMs: number[] = [];
  const promptTokens: number[] = [];
  const requestBytes: number[] = [];
  const failures: string[] = [];
  let left = load.turns;
  let startedAt = 0;

  async function agent(): Promise<void> {
    let session = takeLeastUsed(free, load.requestsPerTask);
    while (session !== null && left > 0 && performance.now() - startedAt < (load.mostMs ?? Infinity)) {
      left--;
      try {
        const turn = await runTurn(target.process.url, session, signal);
        turnMs.push(turn.ms);
        requestBytes.push(turn.requestBytes);
        if (turn.promptTokens !== null) promptTokens.push(turn.promptTokens);
      } catch (cause) {
        load.signal.throwIfAborted();
        failures.push(cause instanceof Error ? cause.message : String(cause));
      }
      if (session.conversation.requests < load.requestsPerTask) continue;
      session = takeLeastUsed(free, load.requestsPerTask);
    }
  }

  const before = { target: target.process.usage(), own: readUsage(Deno.pid) };
  startedAt = performance.now();
  await Promise.all(Array.from({ length: load.sessions }, agent));
  const elapsedMs = performance.now() - startedAt;
  return {
    turnMs,
    promptTokens,
    requestBytes,
    elapsedMs,
    targetCpuMs: cpuBetween(before.target, target.process.usage()),
    ownCpuMs: cpuBetween(before.own, readUsage(Deno.pid)),
    failures,
  };
}

/**
 * One turn: the request, the answer, and what the agent makes of it. Anything but an answer is an error. The time is from
 * sending bytes that are there to having the answer's text: writing the one and reading the other are not in it.
 */
async function runTurn(
  url: string,
  session: BenchSession,
  signal: AbortSignal,
): Promise<{ ms: number; promptTokens: number | null; requestBytes: number }> {
  const { conversation, key } = session;
  const body = conversation.request();
  const requestBytes = body.length;
  const startedAt = performance.now();
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body,
    signal,
  });
  const text = await response.text();
  const ms = performance.now() - startedAt;
  if (!response.ok) throw new Error(`${response.status}: ${text.slice(0, 300)}`);
  const answer: { choices: [{ message: ServedMessage }]; usage: { prompt_tokens?: number } } = JSON.parse(text);
  conversation.take(answer.choices[0].message);
  return { ms, promptTokens: answer.usage.prompt_tokens ?? null, requestBytes };
}

function takeLeastUsed(free: Set<BenchSession>, requestsPerTask: number): BenchSession | null {
  let least: BenchSession | null = null;
  for (const session of free) {
    if (session.conversation.requests >= requestsPerTask) free.delete(session);
    else if (least === null || session.conversation.requests < least.conversation.requests) least = session;
  }
  if (least !== null) free.delete(least);
  return least;
}

function cpuBetween(before: ProcessUsage | null, after: ProcessUsage | null): number | null {
  return before === null || after === null ? null : after.cpuMs - before.cpuMs;
}
