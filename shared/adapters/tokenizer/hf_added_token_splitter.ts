/** Finds added tokens in text: leftmost first, the longest at a place. It knows nothing of the text between them. */

import type { EncodeOptions } from "../../ports/tokenizer.ts";
import type { HfAddedToken } from "./hf_files.ts";

interface Node {
  readonly next: Map<number, Node>;
  token: HfAddedToken | null;
}

/** Text between tokens, or a token. */
export type Section = string | HfAddedToken;

export class AddedTokenSplitter {
  readonly #root: Node = { next: new Map(), token: null };

  constructor(tokens: readonly HfAddedToken[]) {
    for (const token of tokens) {
      let node = this.#root;
      for (let index = 0; index < token.content.length; index++) {
        const unit = token.content.charCodeAt(index);
        let next = node.next.get(unit);
        if (next === undefined) node.next.set(unit, next = { next: new Map(), token: null });
        node = next;
      }
      node.token = token;
    }
  }

  /**
   * The text in pieces; white space that a token takes to itself (`lstrip`, `rstrip`) is gone from its neighbours. Special
   * tokens that touch a plain span, and guarded ones that touch a span of their guard, are not looked for.
   */
  split(text: string, { plainSpans = [], guards = [] }: Pick<EncodeOptions, "plainSpans" | "guards"> = {}): Section[] {
    const tests = guards.filter(({ ids, spans }) => ids.size > 0 && spans.length > 0)
      .map(({ ids, spans }) => ({ ids, overlaps: overlapTest(spans) }));
    const touchesPlain = overlapTest(plainSpans);
    const isPlain = ({ id, special }: HfAddedToken, from: number, to: number) =>
      (special && touchesPlain(from, to)) || tests.some(({ ids, overlaps }) => ids.has(id) && overlaps(from, to));
    const sections: Section[] = [];
    let start = 0;
    let trimStart = false;
    let index = 0;
    while (index < text.length) {
      const token = this.#tokenAt(text, index, isPlain);
      if (token === null) {
        index++;
        continue;
      }
      let between = text.slice(start, index);
      if (trimStart) between = between.trimStart();
      if (token.lstrip) between = between.trimEnd();
      if (between !== "") sections.push(between);
      sections.push(token);
      trimStart = token.rstrip;
      index += token.content.length;
      start = index;
    }
    const rest = trimStart ? text.slice(start).trimStart() : text.slice(start);
    if (rest !== "") sections.push(rest);
    return sections;
  }

  #tokenAt(
    text: string,
    index: number,
    isPlain: (token: HfAddedToken, start: number, end: number) => boolean,
  ): HfAddedToken | null {
    let node = this.#root.next.get(text.charCodeAt(index));
    let found: HfAddedToken | null = null;
    for (let at = index + 1; node !== undefined; at++) {
      if (node.token !== null && !isPlain(node.token, index, at)) found = node.token;
      node = at < text.length ? node.next.get(text.charCodeAt(at)) : undefined;
    }
    return found;
  }
}

/** Whether a stretch touches one of the spans; asked with ascending starts. */
function overlapTest(spans: readonly number[]): (start: number, end: number) => boolean {
  let next = 0;
  return (start, end) => {
    while (next < spans.length && (spans[next + 1] ?? 0) <= start) next += 2;
    return next < spans.length && (spans[next] ?? 0) < end;
  };
}
