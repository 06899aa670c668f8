/** `deno task doctor`: examines a model's tokenizer, template and parsers, and an engine; exits with 1 where anything fails. */

import { givenVariables } from "../shared/adapters/read_environment.ts";
import { VerbatimError } from "../shared/core/errors.ts";
import { composeDoctor } from "./compose_doctor.ts";
import { diagnosisText } from "./diagnosis_text.ts";
import { DOCTOR_USAGE, doctorOptions } from "./doctor_options.ts";
import { examine } from "./examine.ts";

async function main(args: readonly string[]): Promise<number> {
  const options = doctorOptions(args, givenVariables());
  if (options === null) {
    write(Deno.stdout, DOCTOR_USAGE);
    return 0;
  }
  const patient = await composeDoctor(options);
  try {
    const diagnosis = await examine(patient);
    write(Deno.stdout, diagnosisText(diagnosis));
    return diagnosis.healthy ? 0 : 1;
  } finally {
    patient.close();
  }
}

function write(stream: typeof Deno.stdout | typeof Deno.stderr, text: string): void {
  stream.writeSync(new TextEncoder().encode(text));
}

try {
  Deno.exit(await main(Deno.args));
} catch (error) {
  if (!(error instanceof VerbatimError)) throw error;
  write(Deno.stderr, `${error.message}\n`);
  Deno.exit(1);
}
