/**
 * A JSON schema as a grammar over tokens. What it allows is always an instance of the schema, though not every instance
 * is allowed: strings are plain words, numbers are short, and every property is written. A schema that asks for what
 * can't be kept this way is refused. It does not know of requests.
 */

import type { Tokenizer } from "../ports/tokenizer.ts";
import { choiceOf, encodePiece, joinPieces, type Piece } from "./grammar_pieces.ts";
import type { TokenGrammar } from "./token_grammar.ts";

/** The schema can't be kept; the message says why. */
export class UnsupportedSchema extends Error {}

type Schema = Readonly<Record<string, unknown>>;

/** What grammars are compiled with: `words` are ids of plain text. */
export interface GrammarOptions {
  readonly tokenizer: Tokenizer;
  readonly words: Iterable<number>;
}

const MOST_WORDS = 24;
/** Different words, so that a mask stays small. */
const VOCABULARY_WORDS = 256;
const MOST_ITEMS = 8;
const MOST_DIGITS = 6;
const MOST_NESTING = 24;
/** Tokens that need no escaping in a JSON string. */
const SAFE_WORD = /^[A-Za-z0-9 ,.;:!?()-]+$/;
/** Keywords that are kept, or that keep themselves; any other is refused. */
const KNOWN: ReadonlySet<string> = new Set([
  ..."type enum const properties required items prefixItems minItems maxItems anyOf $ref $defs definitions".split(" "),
  ..."title description default examples additionalProperties format $schema $id $comment strict".split(" "),
]);

/** Compiles schema text. Throws `UnsupportedSchema`. */
export function jsonSchemaGrammar(text: string, options: GrammarOptions): TokenGrammar {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    throw new UnsupportedSchema("the schema is not JSON");
  }
  return joinPieces(jsonSchemaPieces(root, options), options.tokenizer);
}

/** Compiles a schema that stands beside other text. Throws `UnsupportedSchema`. */
export function jsonSchemaPieces(schema: unknown, options: GrammarOptions): Piece[] {
  return new Compiler(schema, options).compile();
}

/** Some of the words, of those that need no escaping in a JSON string. */
export function plainWords({ tokenizer, words }: GrammarOptions): ReadonlySet<number> {
  const safe = [...words].filter((id) => SAFE_WORD.test(tokenizer.decode([id])));
  const stride = Math.ceil(safe.length / VOCABULARY_WORDS);
  return new Set(safe.filter((_, i) => i % stride === 0));
}

class Compiler {
  readonly #root: unknown;
  readonly #tokenizer: Tokenizer;
  readonly #words: ReadonlySet<number>;

  constructor(root: unknown, options: GrammarOptions) {
    this.#root = root;
    this.#tokenizer = options.tokenizer;
    this.#words = plainWords(options);
  }

  compile(): Piece[] {
    return this.#value(this.#root, 0);
  }

  #value(schema: unknown, depth: number): Piece[] {
    if (depth > MOST_NESTING) throw new UnsupportedSchema("the schema is recursive or nested too deeply");
    if (schema === true) return ["{}"];
    if (typeof schema !== "object" || schema === null || Array.isArray(schema)) {
      throw new UnsupportedSchema(`${JSON.stringify(schema)} is no schema`);
    }
    const node: Schema = { ...schema };
    for (const key of Object.keys(node)) {
      if (!KNOWN.has(key)) throw new UnsupportedSchema(`the keyword ${key} is not supported`);
    }
    if (node.$ref !== undefined) {
      refuseBeside("$ref", node);
      return this.#value(this.#resolve(node.$ref), depth + 1);
    }
    if (Array.isArray(node.anyOf)) {
      refuseBeside("anyOf", node);
      return [this.#choice(node.anyOf.map((option: unknown) => this.#value(option, depth + 1)))];
    }
    if (node.const !== undefined || Array.isArray(node.enum)) {
      const values: unknown[] = node.const !== undefined ? [node.const] : Array.isArray(node.enum) ? node.enum : [];
      const types: unknown[] = [node.type ?? []].flat();
      const fitting = values.filter((value) => types.length === 0 || types.some((type) => hasType(value, type)));
      return [this.#choice(fitting.map((value) => [JSON.stringify(value)]))];
    }
    if (Array.isArray(node.type)) {
      return [this.#choice(node.type.map((type: unknown) => this.#typed(type, node, depth)))];
    }
    return this.#typed(node.type ?? (node.items === undefined ? "object" : "array"), node, depth);
  }

  #typed(type: unknown, node: Schema, depth: number): Piece[] {
    if (type === "object") return this.#object(node, depth);
    if (type === "array") return this.#array(node, depth);
    if (type === "string") {
      if (node.format !== undefined) throw new UnsupportedSchema("the keyword format is not supported");
      return ['"', { kind: "repeat", of: { kind: "any", ids: this.#words }, least: 1, most: MOST_WORDS }, '"'];
    }
    if (type === "boolean") return [this.#choice([["true"], ["false"]])];
    if (type === "null") return ["null"];
    if (type === "integer") return this.#integer();
    if (type === "number") {
      const fraction: Piece[] = [this.#digits("."), this.#run("0123456789", 1)];
      return [...this.#integer(), this.#choice([[], fraction])];
    }
    throw new UnsupportedSchema(`the type ${JSON.stringify(type)} is not supported`);
  }

  #object(node: Schema, depth: number): Piece[] {
    const properties = typeof node.properties === "object" && node.properties !== null
      ? Object.entries(node.properties)
      : [];
    const known = new Set(properties.map(([name]) => name));
    for (const name of Array.isArray(node.required) ? node.required : []) {
      if (!known.has(String(name))) throw new UnsupportedSchema(`the required property ${String(name)} has no schema`);
    }
    return properties.length === 0 ? ["{}"] : [
      ...properties.flatMap(([name, schema], i): Piece[] => [
        `${i === 0 ? "{" : ", "}${JSON.stringify(name)}: `,
        ...this.#value(schema, depth + 1),
      ]),
      "}",
    ];
  }

  #array(node: Schema, depth: number): Piece[] {
    if (node.prefixItems !== undefined) throw new UnsupportedSchema("the keyword prefixItems is not supported");
    const least = typeof node.minItems === "number" ? node.minItems : 0;
    const most = Math.min(typeof node.maxItems === "number" ? node.maxItems : MOST_ITEMS, Math.max(MOST_ITEMS, least));
    if (most < least) throw new UnsupportedSchema(`minItems ${least} is above maxItems ${most}`);
    if (most === 0) return ["[]"];
    const item = this.#value(node.items ?? true, depth + 1);
    const further: TokenGrammar = {
      kind: "repeat",
      of: joinPieces([", ", ...item], this.#tokenizer),
      least: Math.max(0, least - 1),
      most: most - 1,
    };
    const filled: Piece[] = ["[", ...item, further, "]"];
    return least > 0 ? filled : [this.#choice([["[]"], filled])];
  }

  #integer(): Piece[] {
    const leading: Piece[] = [this.#digits("123456789"), this.#run("0123456789", 0)];
    return [this.#choice([[this.#digits("0")], leading, [this.#digits("-"), ...leading]])];
  }

  #run(characters: string, least: number): TokenGrammar {
    return { kind: "repeat", of: this.#digits(characters), least, most: MOST_DIGITS };
  }

  #digits(characters: string): TokenGrammar {
    return { kind: "choice", options: [...characters].map((character) => this.#encode(character)) };
  }

  #choice(options: readonly Piece[][]): TokenGrammar {
    if (options.length === 0) throw new UnsupportedSchema("there is nothing to choose from");
    return choiceOf(options, this.#tokenizer);
  }

  #encode(text: string): TokenGrammar {
    return encodePiece(text, this.#tokenizer);
  }

  #resolve(reference: unknown): unknown {
    const match = typeof reference === "string" ? /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) : null;
    const [, section, name] = match ?? [];
    const root: Schema = typeof this.#root === "object" && this.#root !== null ? { ...this.#root } : {};
    const definitions = section === undefined ? undefined : root[section];
    const found = typeof definitions === "object" && definitions !== null && name !== undefined
      ? new Map<string, unknown>(Object.entries(definitions)).get(name)
      : undefined;
    if (found === undefined) throw new UnsupportedSchema(`the reference ${JSON.stringify(reference)} leads nowhere`);
    return found;
  }
}

/** A keyword that stands for a whole schema leaves its neighbours no say; rather than ignored, they are refused. */
function refuseBeside(keyword: string, node: Schema): void {
  for (const other of ["type", "enum", "const", "properties", "required", "items", "$ref", "anyOf"]) {
    if (other !== keyword && node[other] !== undefined) {
      throw new UnsupportedSchema(`the keyword ${other} beside ${keyword} is not supported`);
    }
  }
}

function hasType(value: unknown, type: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  const kind: string = typeof value;
  return kind === type;
}
