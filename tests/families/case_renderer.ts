/** Makes tokenizer and renderer of a line of the table. */

import { createHfTokenizer } from "../../shared/adapters/tokenizer/hf_tokenizer.ts";
import type { Renderer } from "../../shared/ports/renderer.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import { createRenderer, type RendererOptions } from "../../shared/rendering/create_renderer.ts";
import type { FamilyCase } from "./family_cases.ts";
import { packagedTokenizer } from "./packaged_vocabulary.ts";
import { writtenVocabulary } from "./written_vocabulary.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

/** The tokenizer. */
export function caseTokenizer({ vocabulary }: FamilyCase): Promise<Tokenizer> {
  if (typeof vocabulary === "string") return packagedTokenizer(vocabulary);
  return Promise.resolve(createHfTokenizer(writtenVocabulary(vocabulary), { worker: "none" }));
}

/** The template's source, or null where the tokenizer's own is to be used. */
export async function caseTemplate({ template }: FamilyCase): Promise<string | null> {
  return template === "packaged" ? null : await Deno.readTextFile(new URL(`../../${template}`, import.meta.url));
}

/** The renderer, with everything found by itself. */
export async function caseRenderer(of: FamilyCase, options: Partial<RendererOptions> = {}): Promise<Renderer> {
  const tokenizer = await caseTokenizer(of);
  const chatTemplate = await caseTemplate(of);
  return createRenderer({ tokenizer, ...(chatTemplate === null ? {} : { chatTemplate }), now: () => NOW, ...options });
}
