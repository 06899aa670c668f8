/** Registers tests that need a real router. Where a package is not installed, one ignored test says so. */

import { findRouter, type RouterPackage, type RunnableRouter } from "./router_process.ts";

/** SGLang's own router, and its successor. */
const PACKAGES: readonly RouterPackage[] = ["sglang-router", "smg"];

/** Registers the tests once for each package; their names should hold the router's. */
export function testOnRouters(subject: string, register: (router: RunnableRouter) => void): void {
  for (const name of PACKAGES) {
    const found = findRouter(name);
    if ("missing" in found) Deno.test({ name: `${subject}: left out, ${found.missing}`, ignore: true, fn() {} });
    else register(found);
  }
}
