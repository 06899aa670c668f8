/** A gateway on a socket. */

import { VerbatimError } from "../shared/core/errors.ts";
import { errorBody, retryHeaders, toVerbatimError } from "../shared/http/error_response.ts";
import { createGatewayApp } from "./create_gateway_app.ts";
import type { HandlerServices } from "./handler_services.ts";

/** How long answers have to say that the server stops. */
const LAST_WORDS_MS = 1000;
const LAST_BYTES_MS = 50;

/** A listening gateway. */
export interface ServedGateway {
  /** `http://host:port`, without a slash at the end. */
  readonly url: string;
  /**
   * Refuses new requests and waits for the answers under way, but for `graceMs` at most. What is left is then told to try
   * again elsewhere, and connections are broken.
   */
  close(graceMs?: number): Promise<void>;
}

/** Starts to listen; port 0 takes a free one. */
export function serveGateway(services: HandlerServices, options: { hostname: string; port: number }): ServedGateway {
  const app = createGatewayApp(services);
  const stop = new AbortController();
  const idle = Promise.withResolvers<void>();
  let active = 0;
  let stopping = false;
  function settle(): void {
    active--;
    if (stopping && active === 0) idle.resolve();
  }
  const server = listen(
    {
      ...options,
      signal: stop.signal,
      onListen() {},
      onError(thrown) {
        // A stream that broke off on purpose comes here too; why it did is in the log already.
        services.logger.debug("An answer broke off", { cause: String(thrown) });
        return failure(toVerbatimError(thrown));
      },
    },
    (request, info) => {
      if (stopping) return failure(stoppingError());
      active++;
      info.completed.then(settle, settle);
      return app.fetch(request, info);
    },
  );
  const host = options.hostname.includes(":") ? `[${options.hostname}]` : options.hostname;
  return {
    url: `http://${host}:${server.addr.port}`,
    async close(graceMs = 0) {
      // The host's own graceful shutdown can't be cut short once it has begun, so the grace is kept here.
      stopping = true;
      const within = async (ms: number): Promise<void> => {
        if (active === 0 || ms === 0) return;
        const late = Promise.withResolvers<void>();
        const timer = setTimeout(late.resolve, ms);
        await Promise.race([idle.promise, late.promise]);
        clearTimeout(timer);
      };
      await within(graceMs);
      if (graceMs > 0 && active > 0) {
        services.inFlight.cancelAll(stoppingError());
        await within(LAST_WORDS_MS);
        // An answer counts as sent before its last bytes have left; breaking its connection would drop them.
        await services.clock.sleep(LAST_BYTES_MS);
      }
      stop.abort();
      await server.finished;
    },
  };
}

/** Listens, or says why not in a sentence. */
function listen(
  options: Deno.ServeTcpOptions & { hostname: string; port: number },
  handler: Deno.ServeHandler<Deno.NetAddr>,
): Deno.HttpServer<Deno.NetAddr> {
  try {
    return Deno.serve(options, handler);
  } catch (cause) {
    const reason = cause instanceof Deno.errors.AddrInUse
      ? "the port is in use"
      : cause instanceof Error
      ? cause.message
      : String(cause);
    throw new VerbatimError("not_ready", `Cannot listen on HOST ${options.hostname}, PORT ${options.port}: ${reason}`, {
      cause,
    });
  }
}

/** The same request may succeed elsewhere, or here a little later. */
function stoppingError(): VerbatimError {
  return new VerbatimError("not_ready", "The server is stopping", { retryAfterS: 1 });
}

/** The answer to a request that reached no handler, or whose handler did not hold. */
function failure(error: VerbatimError): Response {
  return Response.json(errorBody(error), {
    status: error.status,
    headers: { ...retryHeaders(error), "x-should-retry": String(error.retryable), connection: "close" },
  });
}
