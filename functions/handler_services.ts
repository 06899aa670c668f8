/** What handlers are given. Composition roots make it; handlers know only these interfaces. */

import type { Background } from "../shared/ports/background.ts";
import type { Clock } from "../shared/ports/clock.ts";
import type { Ids } from "../shared/ports/ids.ts";
import type { Metrics } from "../shared/ports/metrics.ts";
import type { Logger } from "../shared/ports/logger.ts";
import type { CallsInFlight } from "../shared/services/turns/calls_in_flight.ts";
import type { TaskCloser } from "../shared/services/tasks/close_task.ts";
import type { EngineUpdates } from "../shared/services/engines/engine_updates.ts";
import type { ExtrasProbe } from "../shared/services/extras/extras_probe.ts";
import type { TaskExporter } from "../shared/services/exports/export_task.ts";
import type { TeacherLabeller } from "../shared/services/teacher/label_turn.ts";
import type { ModelCatalog } from "../shared/services/model_catalog.ts";
import type { TeacherScorer } from "../shared/services/teacher/score_with_teacher.ts";
import type { TaskScorer } from "../shared/services/teacher/score_tasks.ts";
import type { TaskService } from "../shared/services/tasks/task_service.ts";
import type { TurnRecorder } from "../shared/services/turns/record_turn.ts";
import type { TextRelay } from "../shared/services/text_models/relay_text.ts";

/** Services and limits shared by every handler. */
export interface HandlerServices {
  readonly models: ModelCatalog;
  /** Null where none is configured. */
  readonly teacher: TeacherScorer | null;
  /** Null without a teacher. */
  readonly labeller: TeacherLabeller | null;
  /** Null without a teacher. */
  readonly taskScorer: TaskScorer | null;
  readonly tasks: TaskService;
  readonly recorder: TurnRecorder;
  readonly textRelay: TextRelay;
  readonly closer: TaskCloser;
  readonly exporter: TaskExporter;
  readonly engines: EngineUpdates;
  readonly extrasProbe: ExtrasProbe;
  readonly inFlight: CallsInFlight;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly background: Background;
  /** Largest request body. */
  readonly maxBytes: number;
  /** Longest silence of a stream before a keep-alive, and before its headers leave. */
  readonly keepAliveMs: number;
  /** Key of Verbatim's own endpoints, where one is set. */
  readonly adminKey: string | undefined;
  /** Where agents reach this server; absent: what the request says. */
  readonly publicUrl: string | undefined;
  /** Keys that are served without a task. */
  readonly passThroughKeys: readonly string[];
  /** Whether an unknown agent key opens a task of its own (development). */
  readonly autoCreateTasks: boolean;
}
