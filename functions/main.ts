/** All functions in one process: `deno task serve`, a container, or Deno Deploy. */

import { readEnvironment } from "../shared/adapters/read_environment.ts";
import { composeDeno } from "../shared/compose_deno.ts";
import { assertSafeListener } from "../shared/compose_services.ts";
import { runCommand } from "./run_command.ts";
import { serveGateway } from "./serve_gateway.ts";
import { untilStopped } from "./until_stopped.ts";

/** How long answers under way may take once the process is asked to stop. */
const STOP_GRACE_MS = 30_000;

async function main(): Promise<void> {
  const environment = readEnvironment();
  assertSafeListener(environment);
  const { services, close } = await composeDeno(environment);
  const gateway = serveGateway(services, { hostname: environment.HOST, port: environment.PORT });
  services.logger.info("Verbatim is listening", { url: gateway.url, model: services.models.default.name });
  await untilStopped();
  services.logger.info("Verbatim is stopping");
  await gateway.close(STOP_GRACE_MS);
  await close();
}

await runCommand(main);
