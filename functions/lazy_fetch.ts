/** Composes on the first request: nothing is read, loaded or connected at import. */

import type { Hono } from "hono";

/** A fetch handler whose app is made by its first request. A failed start is tried again by the next one. */
export function lazyFetch(make: () => Promise<Hono>): (request: Request) => Promise<Response> {
  let app: Promise<Hono> | null = null;
  return async (request) => {
    app ??= make();
    try {
      return await (await app).fetch(request);
    } catch (cause) {
      app = null;
      throw cause;
    }
  };
}
