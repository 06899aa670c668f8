/** A conversation in canonical, dialect-neutral form. It knows neither dialects nor templates. */

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One piece of a message's content. */
export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  /** `sha256` is the hex digest of the image's bytes, or of its URL where the bytes are elsewhere. */
  | { readonly type: "image"; readonly sha256: string; readonly url: string };

/** A message's content: text, or parts where there is more than text (or the client wrote a list). */
export type Content = string | readonly ContentPart[];

/** A function call of an assistant message. */
export interface ToolCall {
  /** The id that the tool result names. */
  readonly id: string;
  /** The function's name, as sampled; not necessarily one that the request offered. */
  readonly name: string;
  /** The arguments as JSON text; may be unparsable where a client echoes what it could not read. */
  readonly arguments: string;
}

/** What every message carries beside its role. */
export interface MessageOrigin {
  /** Index of the entry in the request's `messages` or `input`, from 0; -1 for text that stands outside the list (`system`, `instructions`). */
  readonly source: number;
}

/** Instructions. `developer` messages are system messages. */
export interface SystemMessage extends MessageOrigin {
  /** Tag. */
  readonly role: "system";
  /** Text or parts. */
  readonly content: Content;
}

/** What the user, or the scaffold in the user's place, says. */
export interface UserMessage extends MessageOrigin {
  /** Tag. */
  readonly role: "user";
  /** Text or parts. */
  readonly content: Content;
}

/** A reply of the model, sampled here or elsewhere. */
export interface AssistantMessage extends MessageOrigin {
  /** Tag. */
  readonly role: "assistant";
  /** Text outside reasoning and calls; `""` where there is none. */
  readonly content: string;
  /** Reasoning text, or null where the message carries none. */
  readonly reasoning: string | null;
  /** Set where the reasoning came back in a form of its own: inside a text part, or as a reference to the served item. */
  readonly reasoningPlace?: "nested" | "referenced";
  /** Calls in order. */
  readonly toolCalls: readonly ToolCall[];
  /**
   * How this dialect wrote the message, call ids aside, one line an item: two messages with equal `form` are written
   * alike (same container, same argument strings). Only compared for equality, to tell an exact echo from another representation.
   */
  readonly form: string;
}

/** The result of one call. */
export interface ToolMessage extends MessageOrigin {
  /** Tag. */
  readonly role: "tool";
  /** The call this answers. */
  readonly toolCallId: string;
  /** Text or parts. */
  readonly content: Content;
}

/** One message in canonical form. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** A function the model may call, in OpenAI's form (`type: "function"` is implied). */
export interface ToolDefinition {
  /** The function's name. */
  readonly name: string;
  /** What it does. */
  readonly description?: string;
  /** JSON schema of its arguments. */
  readonly parameters?: Json;
  /** Whatever else stood in the definition, kept in the order written, so that a template renders it as it would anywhere else. */
  readonly raw: { readonly [key: string]: Json };
}

/** Settings that a template reads (`enable_thinking`, ...). */
export type TemplateSettings = { readonly [key: string]: Json };

/** What is rendered: messages, tools and template settings. */
export interface Conversation {
  /** The messages in order. */
  readonly messages: readonly Message[];
  /** The tools offered. */
  readonly tools: readonly ToolDefinition[];
  /** Template settings. */
  readonly settings: TemplateSettings;
}

/** The text of a content: its text parts joined, images left out. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  let text = "";
  for (const part of content) if (part.type === "text") text += part.text;
  return text;
}
