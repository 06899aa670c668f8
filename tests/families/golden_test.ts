/** Templates render what transformers' Jinja renders, byte for byte, and the text has the ids of the tokenizers package. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { VerbatimError } from "../../shared/core/errors.ts";
import { compileChatTemplate } from "../../shared/rendering/chat_template.ts";
import { plain } from "../../shared/rendering/jinja/text.ts";
import { PromptTemplate } from "../../shared/rendering/prompt_template.ts";
import { canonical, type GoldenConversation } from "../golden/golden_conversation.ts";
import { packagedTokenizer } from "./packaged_vocabulary.ts";

interface TemplateEntry {
  readonly name: string;
  readonly template: string;
  readonly vocabulary: string | null;
  readonly special_tokens?: Readonly<Record<string, string>>;
}

type Rendering = { readonly text: string; readonly ids?: string } | { readonly error: string };

interface Golden {
  readonly own: Readonly<Record<string, Rendering>>;
  /** A digest of the text and one of the ids, or Python's error. */
  readonly vectors: readonly string[];
}

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const entries: readonly TemplateEntry[] = await json("../golden/templates.json");
const own: readonly (GoldenConversation & { readonly name: string })[] = await json("../golden/conversations.json");
const vectors: readonly GoldenConversation[] = await json("../fixtures/vectors/templates/qwen3.json");

for (const entry of entries) {
  Deno.test(`${entry.name}: conversations are rendered and encoded as in Python`, async () => {
    const golden: Golden = await json(`../golden/rendered/${entry.name}.json`);
    const render = await renderer(entry);
    for (const conversation of own) {
      assert.deepEqual(render(conversation), shaped(golden.own[conversation.name]), conversation.name);
    }
    for (const [index, conversation] of vectors.entries()) {
      const rendered = render(conversation);
      const found = "error" in rendered
        ? "error"
        : [digest(new TextEncoder().encode(rendered.text)), ...("ids" in rendered ? [rendered.ids] : [])].join(" ");
      const wanted = golden.vectors[index] ?? "";
      assert.equal(found, wanted.endsWith("Error") ? "error" : wanted, `vector ${index}`);
    }
  });
}

async function renderer(entry: TemplateEntry): Promise<(conversation: GoldenConversation) => Rendering> {
  const tokenizer = entry.vocabulary === null ? null : await packagedTokenizer(entry.vocabulary);
  const source = entry.template === "packaged"
    ? tokenizer?.chatTemplate ?? assert.fail("the package has a template")
    : await Deno.readTextFile(new URL(`../../${entry.template}`, import.meta.url));
  const prompt = new PromptTemplate({
    chatTemplate: compileChatTemplate(source, { now: () => NOW }),
    specialTokens: { ...tokenizer?.specialTokens, ...entry.special_tokens },
    defaults: {},
  });
  return (conversation) => {
    const addGenerationPrompt = conversation.add_generation_prompt;
    try {
      const text = plain(prompt.render({ ...canonical(conversation), addGenerationPrompt }));
      if (tokenizer === null) return { text };
      return { text, ids: digest(new Uint8Array(tokenizer.encode(text).buffer)) };
    } catch (error) {
      assert.ok(error instanceof VerbatimError && error.code === "invalid_request", String(error));
      return { error: "" };
    }
  };
}

/** Python's class of an error is its own affair. */
function shaped(rendering: Rendering | undefined): Rendering {
  assert.ok(rendering !== undefined);
  return "error" in rendering ? { error: "" } : rendering;
}

function digest(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

async function json<T>(path: string): Promise<T> {
  return JSON.parse(await Deno.readTextFile(new URL(path, import.meta.url)));
}
