/** Serves an embedded engine on a socket, and takes it off again. */

import type { EmbeddedEngine } from "./embedded_engine.ts";

/** A served engine. */
export interface ServedEngine {
  /** `http://host:port`, without a slash at the end. */
  readonly url: string;
  /** Refuses connections and breaks those there are; the port stays this engine's. */
  refuse(): Promise<void>;
  /** Listens on the same port again. */
  listen(): void;
  /** Stops for good; connections are broken. */
  close(): Promise<void>;
}

interface Listener {
  readonly server: Deno.HttpServer<Deno.NetAddr>;
  readonly stop: AbortController;
}

/** Starts a server; port 0 takes a free one. The death of the engine stops it. */
export function serveEmbeddedEngine(
  engine: Pick<EmbeddedEngine, "app" | "death">,
  options: { hostname?: string; port?: number } = {},
): ServedEngine {
  const hostname = options.hostname ?? "127.0.0.1";
  let current: Listener | null = open(engine, { hostname, port: options.port ?? 0 });
  const { port } = current.server.addr;

  async function refuse(): Promise<void> {
    const listener = current;
    current = null;
    if (listener === null) return;
    listener.stop.abort();
    await listener.server.finished;
  }

  const onDeath = (): void => void refuse();
  engine.death.addEventListener("abort", onDeath, { once: true });
  return {
    url: `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`,
    refuse,
    listen() {
      if (!engine.death.aborted) current ??= open(engine, { hostname, port });
    },
    async close() {
      engine.death.removeEventListener("abort", onDeath);
      await refuse();
    },
  };
}

function open(
  engine: Pick<EmbeddedEngine, "app">,
  { hostname, port }: { hostname: string; port: number },
): Listener {
  const stop = new AbortController();
  const server = Deno.serve(
    { hostname, port, signal: stop.signal, onListen() {}, onError: () => new Response(null, { status: 500 }) },
    (request) => engine.app.fetch(request),
  );
  return { server, stop };
}
