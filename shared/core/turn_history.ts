/**
 * What a request's place in the history is made of: plain data, kept with its turn. A task's turns hold each unit once,
 * however often the scaffold sends it again. It does not know how places are found.
 */

import type { Echo, EchoGrade, ReasoningFate } from "./echo_grade.ts";

/** How a request hangs in the tree of earlier requests. */
export type Relation = "root" | "append" | "branch" | "fork" | "side_root" | "retry";

/** A unit as kept: enough to tell whether another is the same, and to show it. */
export interface StoredUnit {
  /** Who speaks. */
  readonly kind: "system" | "user" | "assistant" | "tool";
  /** Hash of what is compared. */
  readonly hash: string;
  /** Index of its first entry in the `messages` or `input` of the request that wrote it; -1 for text outside the list. */
  readonly message: number;
  /** Its text, shortened. */
  readonly preview: string;
  /** Of an assistant unit: hash of its text, and its calls, shortened. */
  readonly assistant?: { readonly text: string; readonly calls: string };
}

/** A call of a served reply. */
export interface StoredCall {
  /** The id served. */
  readonly id: string;
  /** Hash of name and arguments. */
  readonly hash: string;
}

/** A served reply: what its echo is graded against. */
export interface StoredReply {
  /** Hash of the assistant unit that says the same. Where the prompt ended in an assistant turn, of both together. */
  readonly unit: string;
  /** Hash of that unit's text. */
  readonly text: string;
  /** Whether the reply itself has text. */
  readonly hasText: boolean;
  /** The reply's calls. */
  readonly calls: readonly StoredCall[];
  /** How the dialect wrote the reply, one line an item. */
  readonly forms: readonly string[];
  /** Hashes of its reasoning as served and trimmed, or null where there was none. */
  readonly reasoning: { readonly exact: string; readonly trimmed: string } | null;
  /** Its text, shortened. */
  readonly preview: string;
  /** Its calls, shortened. */
  readonly callsPreview: string;
}

/** The assistant turn that a prompt ended in; the reply continues it. */
export interface OpenTurn {
  /** Hash of its text. */
  readonly text: string;
  /** Hash over its messages one by one: an assistant unit that starts with them has the same hash at that point. */
  readonly messages: string;
  /** Number of its messages. */
  readonly messageCount: number;
  /** Number of its calls. */
  readonly callCount: number;
  /** Number of lines of its forms. */
  readonly formCount: number;
}

/** An earlier turn whose whole prompt a request repeats. */
export interface Link {
  /** The turn. */
  readonly turn: number;
  /** How its reply came back. */
  readonly echo: EchoGrade;
  /** What else changed. */
  readonly also: readonly Echo[];
  /** What became of its reasoning; null where none was served or nothing stands in the reply's place. */
  readonly reasoning: ReasoningFate | null;
}

/** The place of one request. */
export interface RequestHistory {
  /** Digest of the tool list. */
  readonly toolsDigest: string;
  /** Digest of the template settings. */
  readonly settingsDigest: string;
  /** Whether tools were offered. */
  readonly hasTools: boolean;
  /** Whether the request bears the marks by which the task tells its main line; null where it names none. */
  readonly selected: boolean | null;
  /** The turn that wrote the leading units first, and how many they are; null where none is known. */
  readonly shared: { readonly turn: number; readonly units: number } | null;
  /** Where entries stand elsewhere than in the turn that is shared from: from this unit on, by so many entries. */
  readonly moved: readonly (readonly [unit: number, by: number])[];
  /** The units after the shared ones. */
  readonly units: readonly StoredUnit[];
  /** Number of entries in `messages` or `input`. */
  readonly entries: number;
  /** The assistant turn the prompt ends in, or null. */
  readonly open: OpenTurn | null;
  /** The longest earlier prompt that it repeats and goes beyond, or null. */
  readonly related: Link | null;
  /** The longest earlier prompt of the same tools and settings that it repeats and goes beyond. */
  readonly follows: Link | null;
}

/** The place of a committed turn. */
export interface TurnHistory extends RequestHistory {
  /** The reply. */
  readonly reply: StoredReply;
}
