/** `GET /openapi.json`: the endpoints and the shapes of their requests, from the schemas that check them. */

import { z } from "zod";
import { ERROR_CODES } from "../../shared/core/errors.ts";
import { ChatCompletionRequest } from "../../shared/schemas/chat_completions.ts";
import { UpdateEngines } from "../../shared/schemas/engines.ts";
import { GenerateRequest } from "../../shared/schemas/generate.ts";
import { NormalizeRewards } from "../../shared/schemas/rewards.ts";
import { CreateTask, FinishTask, ListTasks, PutReward, ResultQuery } from "../../shared/schemas/tasks.ts";
import { LabelBody, RelabelBody, ScoreTasksBody, TeacherScoreBody } from "../../shared/schemas/teacher_score.ts";
import {
  DecodeRequest,
  IncrementRequest,
  ParseFunctionCallRequest,
  ParseRequest,
  SeparateReasoningRequest,
  TokenizeRequest,
} from "../../shared/schemas/tokenize.ts";

/** Who may call: the admin, the agent of a task, anyone. */
type Access = "admin" | "agent" | "open";

interface Operation {
  readonly method: "get" | "post" | "put" | "delete";
  readonly path: string;
  readonly access: Access;
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly query?: z.ZodObject;
  readonly status?: 200 | 201;
}

const OPERATIONS: readonly Operation[] = [
  { method: "post", path: "/tasks", access: "admin", summary: "Create a task", body: CreateTask, status: 201 },
  { method: "get", path: "/tasks", access: "admin", summary: "List tasks", query: ListTasks },
  { method: "get", path: "/tasks/{id}", access: "admin", summary: "One task, with its capture" },
  { method: "delete", path: "/tasks/{id}", access: "admin", summary: "Drop a task" },
  { method: "get", path: "/tasks/{id}/turns", access: "admin", summary: "Its turns" },
  { method: "get", path: "/tasks/{id}/explain", access: "admin", summary: "The decision on each answered request" },
  {
    method: "post",
    path: "/tasks/{id}/finish",
    access: "admin",
    summary: "Finish it; answers as result",
    body: FinishTask,
  },
  { method: "put", path: "/tasks/{id}/reward", access: "admin", summary: "Set or replace its reward", body: PutReward },
  { method: "get", path: "/tasks/{id}/result", access: "admin", summary: "Its sample", query: ResultQuery },
  { method: "post", path: "/tasks/rewards/normalize", access: "admin", summary: "Advantages", body: NormalizeRewards },
  { method: "post", path: "/generate", access: "admin", summary: "Sample from ids or messages", body: GenerateRequest },
  { method: "post", path: "/teacher-score", access: "admin", summary: "Force-decoded scores", body: TeacherScoreBody },
  { method: "post", path: "/teacher-score/tasks", access: "admin", summary: "Score stored rows", body: ScoreTasksBody },
  {
    method: "post",
    path: "/teacher-score/relabel",
    access: "admin",
    summary: "Stored turns, relabelled",
    body: RelabelBody,
  },
  { method: "post", path: "/teacher-score/label", access: "admin", summary: "The teacher's action", body: LabelBody },
  { method: "post", path: "/tokenize", access: "admin", summary: "Encode text or messages", body: TokenizeRequest },
  {
    method: "post",
    path: "/tokenize/increment",
    access: "admin",
    summary: "What follows a series",
    body: IncrementRequest,
  },
  { method: "post", path: "/tokenize/decode", access: "admin", summary: "Ids to text", body: DecodeRequest },
  {
    method: "post",
    path: "/tokenize/parse",
    access: "admin",
    summary: "Sampled text to a message",
    body: ParseRequest,
  },
  {
    method: "post",
    path: "/tokenize/parse_function_call",
    access: "admin",
    summary: "Calls of a text, in SGLang's shape",
    body: ParseFunctionCallRequest,
  },
  {
    method: "post",
    path: "/tokenize/separate_reasoning",
    access: "admin",
    summary: "Reasoning of a text, in SGLang's shape",
    body: SeparateReasoningRequest,
  },
  {
    method: "post",
    path: "/v1/chat/completions",
    access: "agent",
    summary: "OpenAI chat completions",
    body: ChatCompletionRequest,
  },
  { method: "post", path: "/v1/responses", access: "agent", summary: "OpenAI Responses" },
  { method: "post", path: "/v1/messages", access: "agent", summary: "Anthropic Messages" },
  { method: "post", path: "/v1/messages/count_tokens", access: "agent", summary: "Tokens of a rendered prompt" },
  { method: "get", path: "/v1/models", access: "agent", summary: "The configured models" },
  { method: "get", path: "/engines", access: "admin", summary: "Workers, their load, the queue before them" },
  {
    method: "post",
    path: "/engines/update",
    access: "admin",
    summary: "Pause, update, set the version of, continue all workers",
    body: UpdateEngines,
  },
  { method: "get", path: "/healthz", access: "open", summary: "Alive" },
  { method: "get", path: "/readyz", access: "open", summary: "Ready, or why not" },
  { method: "get", path: "/metrics", access: "open", summary: "Counters in Prometheus' text format" },
];

/** The document; made once. */
export function openapiDocument(): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  const shared: Record<string, unknown> = {};
  for (const operation of OPERATIONS) {
    (paths[operation.path] ??= {})[operation.method] = operationObject(operation, shared);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Verbatim", version: "0.1.0", description: "A token-exact rollout gateway." },
    paths,
    components: {
      securitySchemes: {
        admin: { type: "http", scheme: "bearer", description: "VERBATIM_ADMIN_KEY" },
        agent: { type: "http", scheme: "bearer", description: "The task's api_key" },
      },
      schemas: {
        ...shared,
        Error: {
          type: "object",
          required: ["error"],
          properties: {
            error: {
              type: "object",
              required: ["code", "message", "retryable"],
              properties: {
                code: { enum: Object.keys(ERROR_CODES) },
                message: { type: "string" },
                retryable: { type: "boolean" },
                details: { type: "object" },
              },
            },
          },
        },
      },
    },
  };
}

/** What schemas refer to by name is put into `shared`. */
function operationObject(operation: Operation, shared: Record<string, unknown>): Record<string, unknown> {
  const name = `${operation.method}${operation.path.replaceAll(/\W+/g, "_")}`;
  const inPath = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  return {
    summary: operation.summary,
    security: operation.access === "open" ? [] : [{ [operation.access]: [] }],
    parameters: [...inPath, ...operation.query === undefined ? [] : queryParameters(operation.query, { name, shared })],
    ...(operation.body === undefined ? {} : {
      requestBody: { content: { "application/json": { schema: jsonSchema(operation.body, { name, shared }) } } },
    }),
    responses: {
      [String(operation.status ?? 200)]: { description: "Done" },
      // Agents get errors in their dialect.
      ...(operation.access === "agent" ? {} : {
        default: {
          description: "Refused or failed",
          content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
        },
      }),
    },
  };
}

/** Whose schemas they are, and where those that are referred to go. */
interface Owner {
  readonly name: string;
  readonly shared: Record<string, unknown>;
}

function queryParameters(query: z.ZodObject, owner: Owner): unknown[] {
  return Object.entries(query.shape).map(([name, schema]) => {
    const own = { ...owner, name: `${owner.name}_${name}` };
    return { name, in: "query", schema: jsonSchema(schema, own) };
  });
}

/** What a caller sends: defaults make a field optional. References are resolved from the document's root. */
function jsonSchema(schema: z.core.$ZodType, { name, shared }: Owner): unknown {
  const { $schema: _, $defs, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  const renamed = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value).replaceAll('"#/$defs/', `"#/components/schemas/${name}_`));
  for (const [key, definition] of Object.entries($defs ?? {})) shared[`${name}_${key}`] = renamed(definition);
  return renamed(rest);
}
