/** The module graph of an entry point, from `deno info --json`. */

import { fileURLToPath } from "node:url";

/** The project's folder. */
export const ROOT = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** Imports between the project's files, and from them to packages; paths are relative to the project. */
export interface ModuleGraph {
  readonly edges: readonly { readonly from: string; readonly to: string }[];
  /** `name` is `package@version`, of the import itself and of everything behind it. */
  readonly packages: readonly { readonly from: string; readonly name: string }[];
}

interface DenoInfo {
  readonly modules: readonly {
    readonly specifier: string;
    readonly dependencies?: readonly {
      readonly code?: { readonly specifier?: string };
      readonly type?: { readonly specifier?: string };
      readonly npmPackage?: string;
    }[];
  }[];
  readonly npmPackages: Readonly<Record<string, { readonly dependencies: readonly string[] }>>;
}

/** Reads the graph of one root, types included. */
export async function moduleGraph(root: string): Promise<ModuleGraph> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", root],
    cwd: ROOT,
  }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(`deno info ${root} failed: ${decoder.decode(stderr)}`);
  const info: DenoInfo = JSON.parse(decoder.decode(stdout));
  const edges: { from: string; to: string }[] = [];
  const packages: { from: string; name: string }[] = [];
  for (const module of info.modules) {
    if (!module.specifier.startsWith("file:")) continue;
    const from = relative(fromFileUrl(new URL(module.specifier)));
    for (const dependency of module.dependencies ?? []) {
      if (dependency.npmPackage !== undefined) {
        for (const name of behind(dependency.npmPackage, info)) packages.push({ from, name });
        continue;
      }
      const to = dependency.code?.specifier ?? dependency.type?.specifier;
      if (to?.startsWith("file:")) edges.push({ from, to: relative(fromFileUrl(new URL(to))) });
    }
  }
  return { edges, packages };
}

/** A package and everything it depends on. */
function behind(name: string, info: DenoInfo): string[] {
  const found = new Set<string>();
  const pending = [name];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    pending.push(...info.npmPackages[next]?.dependencies ?? []);
  }
  return [...found];
}

/** A path below the project. */
export function relative(path: string): string {
  return path.startsWith(`${ROOT}/`) ? path.slice(ROOT.length + 1) : path;
}

/** A file URL as a path. */
export function fromFileUrl(url: URL): string {
  return fileURLToPath(url);
}
