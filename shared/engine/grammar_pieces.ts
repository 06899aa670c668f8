/** Grammars in the making: text that is not encoded yet stands beside what is, so that neighbouring texts are encoded together. */

import type { Tokenizer } from "../ports/tokenizer.ts";
import type { TokenGrammar } from "./token_grammar.ts";

/** Literal text, or a grammar. */
export type Piece = string | TokenGrammar;

/** One grammar of pieces that follow one another. */
export function joinPieces(pieces: readonly Piece[], tokenizer: Tokenizer): TokenGrammar {
  const parts: TokenGrammar[] = [];
  let text = "";
  for (const piece of [...pieces, null]) {
    if (typeof piece === "string") {
      text += piece;
      continue;
    }
    if (text !== "") parts.push(encodePiece(text, tokenizer));
    text = "";
    if (piece !== null) parts.push(piece);
  }
  return { kind: "sequence", parts };
}

/** Literal text as a grammar. */
export function encodePiece(text: string, tokenizer: Tokenizer): TokenGrammar {
  return { kind: "ids", ids: tokenizer.encode(text, { addSpecialTokens: false }) };
}

/** Any one of several sequences. */
export function choiceOf(options: readonly (readonly Piece[])[], tokenizer: Tokenizer): TokenGrammar {
  return { kind: "choice", options: options.map((pieces) => joinPieces(pieces, tokenizer)) };
}
