/** The request's tools as the machines need them: which names there are, and the schemas of their arguments. */

import type { Json, ToolDefinition } from "../../core/message.ts";
import { ArgumentSchema } from "./argument_schema.ts";
import type { MessageSink } from "./message_sink.ts";
import { typeValue } from "./typed_value.ts";

/** An argument as written: its key and the text of its value. */
export interface RawArgument {
  readonly key: string;
  readonly text: string;
}

/** Looks tools up and types their arguments. */
export class ToolTable {
  readonly #schemas = new Map<string, ArgumentSchema | null>();

  constructor(tools: readonly ToolDefinition[]) {
    for (const { name, parameters } of tools) {
      const schema = parameters === undefined ? null : new ArgumentSchema(parameters);
      this.#schemas.set(name, schema?.declaresProperties ? schema : null);
    }
  }

  /** Whether the request offers this tool. */
  has(name: string): boolean {
    return this.#schemas.has(name);
  }

  /** The schema of a tool's arguments; null where the tool is unknown or declares no properties. */
  schemaOf(name: string): ArgumentSchema | null {
    return this.#schemas.get(name) ?? null;
  }

  /** The arguments as compact JSON: keys in the order they first came, the last value of a key wins; each typed by the tool's schema. */
  typedArguments(
    name: string,
    values: readonly RawArgument[],
    sink: MessageSink,
    typeOne: TypeOne = typePlain,
  ): string {
    const schema = this.schemaOf(name);
    const members = new Map<string, string>();
    for (const { key, text } of values) {
      const property = schema?.propertyOf(key);
      if (schema !== null && property === undefined) sink.problem("unknown_parameter");
      const json = schema === null || property === undefined
        ? JSON.stringify(text)
        : typeOne(text, schema, property, sink);
      members.set(key, json);
    }
    return `{${[...members].map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`;
  }
}

/** Types one value by its schema, as JSON text, and notes a misfit. */
export type TypeOne = (text: string, schema: ArgumentSchema, property: Json, sink: MessageSink) => string;

/** Types a value that is one text. */
export function typePlain(text: string, schema: ArgumentSchema, property: Json, sink: MessageSink): string {
  const { json, fits } = typeValue(text, schema.typesOf(property));
  if (!fits) sink.problem("argument_type");
  return json;
}
