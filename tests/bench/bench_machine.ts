/** What the bench ran on. */

import type { BenchMachine } from "./report.ts";

/** This machine and the versions that matter. */
export async function benchMachine(): Promise<BenchMachine> {
  const config: { imports: Record<string, string> } = JSON.parse(
    await Deno.readTextFile(new URL("../../deno.json", import.meta.url)),
  );
  const hono = config.imports.hono?.split("@").at(-1) ?? "unknown";
  return {
    cpu: await cpuName(),
    cores: navigator.hardwareConcurrency,
    system: `${Deno.build.os} ${Deno.build.arch}`,
    versions: { Deno: Deno.version.deno, V8: Deno.version.v8, Hono: hono },
  };
}

async function cpuName(): Promise<string> {
  try {
    const info = await Deno.readTextFile("/proc/cpuinfo");
    return /^model name\s*:\s*(.+)$/m.exec(info)?.[1] ?? "unknown CPU";
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "unknown CPU";
    throw error;
  }
}
