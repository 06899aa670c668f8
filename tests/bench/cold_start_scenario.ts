/** How long a gateway takes from nothing to its first answer, and what memory it then has. */

import { openGatewayTask, startGateway } from "./bench_targets.ts";

/** One start. */
export interface ColdStart {
  /** From the start of the process to the first 200 of `/healthz`. */
  readonly healthyMs: number;
  /** From the start of the process to the first answered turn. */
  readonly firstTurnMs: number;
  /** Resident memory once it is healthy; null where the system does not tell. */
  readonly rssBytes: number | null;
}

/** Starts a gateway on an empty database, lets it answer one turn, and stops it. */
export async function measureColdStart(
  engineUrl: string,
  options: { readonly kvPath: string; readonly signal: AbortSignal },
): Promise<ColdStart> {
  const { signal } = options;
  await using gateway = await startGateway(engineUrl, options.kvPath);
  const health = await fetch(`${gateway.url}/healthz`, { signal });
  await health.body?.cancel();
  if (!health.ok) throw new Error(`The gateway's /healthz answers ${health.status}`);
  const healthyMs = performance.now() - gateway.startedAt;
  const rssBytes = gateway.usage()?.rssBytes ?? null;
  const key = await openGatewayTask(gateway.url);
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ messages: [{ role: "user", content: "Hello" }] }),
    signal,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`The gateway's first turn is ${response.status}: ${text.slice(0, 300)}`);
  return { healthyMs, firstTurnMs: performance.now() - gateway.startedAt, rssBytes };
}
