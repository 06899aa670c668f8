/** The coding agents as npm has them, each in a folder of its own under `.cache/agents`, and the Node that runs them. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CACHE = fileURLToPath(new URL("../../.cache/agents/", import.meta.url));
const INSTALL_LIMIT_MS = 900_000;

/** A package at the version these tests speak of. */
export interface AgentPackage {
  readonly name: string;
  readonly version: string;
}

/** The Node that runs agents; its folder is on their path. */
const NODE: AgentPackage = { name: "node", version: "24.13.0" };

/** Where an installed package lies, or why it can't be had. */
export type Installed =
  | { readonly kind: "installed"; readonly folder: string }
  | { readonly kind: "impossible"; readonly reason: string };

/** Both packages, or the first reason against. */
export type InstalledAgent =
  | { readonly kind: "installed"; readonly folder: string; readonly node: string }
  | { readonly kind: "impossible"; readonly reason: string };

/** An agent and its Node, from the cache where they are there already. */
export async function installAgent(agent: AgentPackage): Promise<InstalledAgent> {
  const node = await install(NODE);
  if (node.kind === "impossible") return node;
  const installed = await install(agent);
  if (installed.kind === "impossible") return installed;
  return { ...installed, node: join(node.folder, "bin", "node") };
}

async function install({ name, version }: AgentPackage): Promise<Installed> {
  const title = `${name}@${version}`;
  const prefix = join(CACHE, title.replaceAll("/", "+"));
  const folder = join(prefix, "node_modules", name);
  if (await exists(prefix)) return { kind: "installed", folder };
  await Deno.mkdir(CACHE, { recursive: true });
  // A folder under its final name is whole: npm works in another, so that an interrupted download is not taken for one.
  const unfinished = await Deno.makeTempDir({ dir: CACHE, prefix: "unfinished-" });
  try {
    const { success, stderr } = await new Deno.Command("npm", {
      args: ["install", "--prefix", unfinished, "--no-audit", "--no-fund", "--loglevel=error", title],
      stdout: "null",
      stderr: "piped",
      signal: AbortSignal.timeout(INSTALL_LIMIT_MS),
    }).output();
    // The first lines say what it was; the rest is where in npm.
    const said = new TextDecoder().decode(stderr).trim().split("\n").slice(0, 4).join("; ");
    if (!success) return { kind: "impossible", reason: `npm could not install ${title}: ${said || "it ran too long"}` };
    await Deno.rename(unfinished, prefix);
    return { kind: "installed", folder };
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
    return { kind: "impossible", reason: `npm is not there to install ${title}` };
  } finally {
    await Deno.remove(unfinished, { recursive: true }).catch(ignoreMissing);
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, ignoreMissing) ?? false;
}

function ignoreMissing(thrown: unknown): void {
  if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
}
