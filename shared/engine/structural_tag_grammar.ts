/**
 * A structural tag (XGrammar's format) as a grammar over tokens: literals, JSON by schema and free text, one after the
 * other or as alternatives, and tags. Free text is plain words. What it can't keep is refused. It does not know of requests.
 */

import { choiceOf, joinPieces, type Piece } from "./grammar_pieces.ts";
import { type GrammarOptions, jsonSchemaPieces, plainWords, UnsupportedSchema } from "./json_schema_grammar.ts";
import type { TokenGrammar } from "./token_grammar.ts";

const MOST_WORDS = 24;
/** Tags of one list. */
const MOST_TAGS = 4;

type Format = Readonly<Record<string, unknown>>;

/** Compiles a structural tag's JSON text. Throws `UnsupportedSchema`. */
export function structuralTagGrammar(text: string, options: GrammarOptions): TokenGrammar {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    throw new UnsupportedSchema("the structural tag is not JSON");
  }
  const tag = asFormat(root);
  if (tag.type !== "structural_tag") throw new UnsupportedSchema("it is no structural tag");
  return joinPieces(piecesOf(asFormat(tag.format), options), options.tokenizer);
}

function piecesOf(format: Format, options: GrammarOptions): Piece[] {
  const { tokenizer } = options;
  switch (format.type) {
    case "const_string":
      return [asText(format.value)];
    case "json_schema":
      if ((format.style ?? "json") !== "json") throw new UnsupportedSchema("only the style json is supported");
      return jsonSchemaPieces(format.json_schema, options);
    case "any_text":
      return [{ kind: "repeat", of: { kind: "any", ids: plainWords(options) }, least: 0, most: MOST_WORDS }];
    case "sequence":
      return asFormats(format.elements).flatMap((element) => piecesOf(element, options));
    case "or":
      return [choiceOf(asFormats(format.elements).map((element) => piecesOf(element, options)), tokenizer)];
    case "tag":
      return [asText(format.begin), ...piecesOf(asFormat(format.content), options), asText(format.end)];
    case "tags_with_separator":
      return tagList(format, options);
    default:
      throw new UnsupportedSchema(`the format ${JSON.stringify(format.type)} is not supported`);
  }
}

function tagList(format: Format, options: GrammarOptions): Piece[] {
  const { tokenizer } = options;
  const tags = asFormats(format.tags).map((tag) => piecesOf(tag, options));
  const separator = asText(format.separator);
  const least = format.at_least_one === true ? 1 : 0;
  const further: TokenGrammar = {
    kind: "repeat",
    of: choiceOf(tags.map((tag) => [separator, ...tag]), tokenizer),
    least: 0,
    most: format.stop_after_first === true ? 0 : MOST_TAGS - 1,
  };
  const list: Piece[] = [choiceOf(tags, tokenizer), further];
  return least === 1 ? list : [choiceOf([[], list], tokenizer)];
}

function asFormat(value: unknown): Format {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UnsupportedSchema(`${JSON.stringify(value)} is no format`);
  }
  return { ...value };
}

function asFormats(value: unknown): Format[] {
  if (!Array.isArray(value) || value.length === 0) throw new UnsupportedSchema("a list of formats is empty or missing");
  return value.map(asFormat);
}

function asText(value: unknown): string {
  if (typeof value !== "string") throw new UnsupportedSchema(`${JSON.stringify(value)} is no text`);
  return value;
}
