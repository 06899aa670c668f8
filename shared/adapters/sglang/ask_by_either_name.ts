/** Questions that SGLang has renamed: workers know both names, released routers the old one alone. It knows no wire. */

import { EngineFailure } from "./engine_failure.ts";

/** A question by its present name, and the one it had. */
export interface RenamedPath {
  readonly path: string;
  readonly oldPath: string;
}

/** What a worker serves. */
export const MODEL_INFO: RenamedPath = { path: "/model_info", oldPath: "/get_model_info" };
/** What it was started with. */
export const SERVER_INFO: RenamedPath = { path: "/server_info", oldPath: "/get_server_info" };

/** Asks by the present name; by the old one where nobody knows that. A failure is the one of the name asked last. */
export async function askByEitherName<T>(
  { path, oldPath }: RenamedPath,
  ask: (path: string) => Promise<T>,
): Promise<T> {
  try {
    return await ask(path);
  } catch (cause) {
    if (!(cause instanceof EngineFailure) || cause.status !== 404) throw cause;
    return await ask(oldPath);
  }
}
