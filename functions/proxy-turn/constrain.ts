/**
 * Calls that must come and answers that must be JSON, as grammars for the engine. An agent that asks for one breaks
 * without it, so it holds in every task; the turn's basis says that its logprobs are constrained. It knows no dialect.
 */

import type { Conversation, Json, ToolDefinition } from "../../shared/core/message.ts";
import type { SamplingParams } from "../../shared/core/sampling.ts";
import type { ParserRequest, Renderer } from "../../shared/ports/renderer.ts";
import { answerGrammar, callGrammar, type Grammar } from "./call_grammar.ts";
import type { ReadContext } from "./dialect.ts";
import { invalid, unsupported } from "./read_json.ts";

/** A wish about the shape of the answer. Field names are the request's, for refusals. */
export interface Shape {
  readonly toolChoice: { readonly field: string; readonly choice: ParserRequest["toolChoice"] };
  /** False: one call at most. */
  readonly parallelCalls: boolean;
  /** The JSON schema the text must follow, or null. */
  readonly schema: { readonly field: string; readonly schema: Json } | null;
}

/** What becomes of it. */
export interface Constraint {
  readonly toolChoice: ParserRequest["toolChoice"];
  readonly wished: SamplingParams;
}

/** Settles a wish. What no grammar can enforce is `unsupported`. */
export async function constrain(
  request: { readonly model: string | null; readonly conversation: Conversation; readonly shape: Shape },
  context: Pick<ReadContext, "rendererOf">,
): Promise<Constraint> {
  const { conversation, shape } = request;
  const { choice, field } = shape.toolChoice;
  const callable = toolsOf(choice, field, conversation.tools);
  if (callable === null && shape.schema === null) return { toolChoice: choice, wished: {} };
  const renderer = context.rendererOf(request.model);
  // A text-level backend has both wishes in its own API, and enforces them itself.
  if (renderer === null) {
    return {
      toolChoice: choice,
      wished: shape.schema === null ? {} : { json_schema: JSON.stringify(shape.schema.schema) },
    };
  }
  const opensReasoning = await promptOpensReasoning(conversation, renderer);
  if (callable !== null) {
    const parallel = shape.parallelCalls && choice === "required";
    const grammar = callGrammar({ tools: callable, parallel, opensReasoning }, renderer);
    return { toolChoice: choice, wished: enforceable(grammar, field, renderer) };
  }
  const mayCall = choice !== "none" && conversation.tools.length > 0;
  const calls = mayCall ? { tools: conversation.tools, parallel: shape.parallelCalls } : null;
  const grammar = shape.schema === null
    ? null
    : answerGrammar({ schema: shape.schema.schema, calls, opensReasoning }, renderer);
  return { toolChoice: choice, wished: enforceable(grammar, shape.schema?.field ?? field, renderer) };
}

function enforceable(grammar: Grammar | null, field: string, renderer: Renderer): Grammar {
  if (grammar !== null) return grammar;
  const { toolCallParser, reasoningParser } = renderer;
  throw unsupported(
    field,
    "no grammar of the engine can enforce it for this model's format " +
      `(tool calls ${toolCallParser ?? "none"}, reasoning ${reasoningParser ?? "none"})`,
  );
}

/** The tools of which one must be called, or null where none must. */
function toolsOf(
  choice: ParserRequest["toolChoice"],
  field: string,
  tools: readonly ToolDefinition[],
): readonly ToolDefinition[] | null {
  if (choice === "auto" || choice === "none") return null;
  if (tools.length === 0) throw invalid(field, "a call is asked for and no tools are offered");
  if (choice === "required") return tools;
  const named = tools.filter((tool) => tool.name === choice.name);
  if (named.length === 0) throw invalid(field, `there is no tool ${JSON.stringify(choice.name)} among those offered`);
  return named;
}

/** Whether replies begin within reasoning under these settings: that of the shortest conversation tells. */
async function promptOpensReasoning({ settings }: Conversation, renderer: Renderer): Promise<boolean> {
  const messages = [{ role: "user", content: "?", source: 0 } as const];
  return (await renderer.renderPrompt({ messages, tools: [], settings })).opensReasoning;
}
