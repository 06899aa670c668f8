/** The teacher-score function on an edge host that deploys each function on its own. */

import { composeSupabase } from "../../shared/compose_supabase.ts";
import { createFunctionApp } from "../create_gateway_app.ts";
import { lazyFetch } from "../lazy_fetch.ts";

export default { fetch: lazyFetch(async () => createFunctionApp("teacher-score", await composeSupabase())) };
