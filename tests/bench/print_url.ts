/** How a process of the bench says where it listens. */

/** Writes the server's URL as one line to standard output. */
export function printUrl(server: Deno.HttpServer<Deno.NetAddr>): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`http://127.0.0.1:${server.addr.port}\n`));
}
