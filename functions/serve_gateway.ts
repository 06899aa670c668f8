/** A gateway on a socket. */

import { createGatewayApp } from "./create_gateway_app.ts";
import type { HandlerServices } from "./handler_services.ts";

/** A listening gateway. */
export interface ServedGateway {
  /** `http://host:port`, without a slash at the end. */
  readonly url: string;
  /** Takes no new connections and waits for the answers under way, but for `graceMs` at most. */
  close(graceMs?: number): Promise<void>;
}

/** Starts to listen; port 0 takes a free one. */
export function serveGateway(services: HandlerServices, options: { hostname: string; port: number }): ServedGateway {
  const app = createGatewayApp(services);
  const stop = new AbortController();
  const server = Deno.serve(
    { ...options, signal: stop.signal, onListen() {} },
    (request, info) => app.fetch(request, info),
  );
  const host = options.hostname.includes(":") ? `[${options.hostname}]` : options.hostname;
  return {
    url: `http://${host}:${server.addr.port}`,
    async close(graceMs = 0) {
      const timer = setTimeout(() => stop.abort(), graceMs);
      await Promise.race([server.shutdown(), server.finished]);
      clearTimeout(timer);
      await server.finished;
    },
  };
}
