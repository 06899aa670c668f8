/** A plain HTTP balancer: each request goes to the next in turn, once. It keeps no session and tries nothing again. */

/** A balancer on loopback. */
export interface Balancer extends AsyncDisposable {
  readonly url: string;
  /** Which targets answered whose requests well, by the key they came with. */
  readonly served: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Starts one before the URLs that it is told at each request. */
export function startBalancer(targets: () => readonly string[]): Balancer {
  const served = new Map<string, Set<string>>();
  let next = 0;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {}, onError: gone }, async (request) => {
    const { pathname, search } = new URL(request.url);
    const target = targets()[next++ % targets().length]!;
    const { method, headers, body, signal } = request;
    const response = await fetch(target + pathname + search, { method, headers, body, signal });
    const key = headers.get("authorization");
    if (response.ok && key !== null) served.set(key, (served.get(key) ?? new Set()).add(target));
    return response;
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    served,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** Nobody answers there. */
function gone(): Response {
  return new Response("Bad Gateway", { status: 502 });
}
