/** `deno task dev`: gateway and embedded engine on loopback, a task for every key, nothing kept. */

import { givenVariables, readEnvironment } from "../shared/adapters/read_environment.ts";
import { isLoopback } from "../shared/compose_services.ts";
import { composeDevelopment } from "../shared/compose_development.ts";
import { VerbatimError } from "../shared/core/errors.ts";
import { runCommand } from "./run_command.ts";
import { serveGateway } from "./serve_gateway.ts";
import { untilStopped } from "./until_stopped.ts";

const print = (line: string) => Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));

async function main(): Promise<void> {
  const given = givenVariables();
  const { HOST, PORT } = readEnvironment(given);
  if (!isLoopback(HOST)) {
    throw new VerbatimError("not_ready", `deno task dev listens on loopback only, not on HOST ${HOST}`);
  }
  const development = await composeDevelopment({
    environment: { TASK_AUTOCREATE: "on", PASSTHROUGH_KEYS: "EMPTY", ...given },
  });
  const gateway = serveGateway(development.services, { hostname: HOST, port: PORT });
  print(`Gateway          ${gateway.url}
OpenAI base URL  ${gateway.url}/v1   any key opens a task of its own; EMPTY is served without recording
Embedded engine  ${development.served.url}

Create a task:
  curl -s ${gateway.url}/tasks -d '{"task_id":"first"}'
Call the model with its api_key (or with any key). It says noise, but what follows "say: " in a message it repeats:
  curl -s ${gateway.url}/v1/chat/completions -H 'authorization: Bearer any-key' \\
    -d '{"messages":[{"role":"user","content":"say: Hello"}],"max_tokens":32}'
List what was recorded:
  curl -s ${gateway.url}/tasks

Ctrl-C stops both; nothing is kept.`);
  await untilStopped();
  await gateway.close();
  await development.close();
}

await runCommand(main);
