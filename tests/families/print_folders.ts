/** Prints the folder of each packaged vocabulary as JSON, for Python, which knows nothing of npm. */

import vocabularies from "../golden/vocabularies.json" with { type: "json" };
import { packagedFolder } from "./packaged_vocabulary.ts";

const folders: Record<string, string> = {};
for (const name of vocabularies) folders[name] = new URL(await packagedFolder(name)).pathname;
Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(folders)}\n`));
