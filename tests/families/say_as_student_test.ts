/** A teacher's decision in the format of every family: the tokens follow the prompt, and the family's own parser reads them as it. */

import assert from "node:assert/strict";
import { type CanonicalAction, readAction } from "../../shared/core/canonical_action.ts";
import type { Message } from "../../shared/core/message.ts";
import { sayAsStudent } from "../../shared/services/teacher/say_as_student.ts";
import { caseRenderer } from "./case_renderer.ts";
import { FAMILY_CASES } from "./family_cases.ts";
import { TOOL, user } from "./family_conversation.ts";

const CALL = { kind: "tool_call", name: TOOL.name, arguments: { path: 'a <b> "c"\n& d' } } as const;

/** What is said, by what is beside it. */
const ACTIONS = {
  text: { kind: "message", text: "Hello there." },
  "reasoned text": { kind: "message", text: "Hello there.", reasoning: "Hm." },
  call: CALL,
  "reasoned call with text": { ...CALL, text: "I look.", reasoning: "Hm." },
} as const satisfies Record<string, CanonicalAction>;

/** What of it is left out; all of it, where it is not said at all. */
type Said = Partial<Record<keyof typeof ACTIONS, "reasoning" | "text" | "reasoning,text" | "not at all">>;

const UNREASONING: Said = { "reasoned text": "reasoning", "reasoned call with text": "reasoning" };
/** The prompt opens reasoning, and the template has no reply that closes it at once. */
const ALWAYS_REASONING: Said = { text: "not at all", call: "not at all" };
const UNCALLING: Said = {
  "reasoned text": "reasoning",
  call: "not at all",
  "reasoned call with text": "not at all",
};

/** What the families can't say; all else is said whole. */
const EXCEPTIONS: Readonly<Record<string, Said>> = {
  "Qwen2.5": UNREASONING,
  "Qwen3-Coder": UNREASONING,
  "GLM-4.7": ALWAYS_REASONING,
  "DeepSeek V3": UNREASONING,
  "DeepSeek V3.1": UNREASONING,
  "DeepSeek V3.2": UNREASONING,
  "Kimi K2": UNREASONING,
  "Llama 3": UNCALLING,
  "Llama 3.1 without tools": UNCALLING,
  "Llama 3.1 with tools": { "reasoned text": "reasoning", "reasoned call with text": "reasoning,text" },
  "Mistral": UNREASONING,
  "gpt-oss": { "reasoned call with text": "text" },
  "MiniMax M2": ALWAYS_REASONING,
  "Gemma 3": UNCALLING,
  "Gemma (Gemini's vocabulary)": UNCALLING,
};

for (const of of FAMILY_CASES.filter(({ refused }) => refused === undefined)) {
  Deno.test(`${of.name}: a teacher's decision is written as a reply of its own, or not at all`, async () => {
    const renderer = await caseRenderer(of);
    const { tokenizer, stopTokenIds } = renderer;
    const conversation = { messages: [user("Hi")], tools: [TOOL], settings: {} };
    const { ids: prompt, opensReasoning } = await renderer.renderPrompt(conversation);
    const place = {
      renderer,
      conversation,
      tools: conversation.tools,
      toolChoice: "auto" as const,
      opensReasoning,
      stops: { stop_token_ids: [...stopTokenIds] },
    };
    const found: Record<string, string> = {};
    for (const [name, action] of Object.entries<CanonicalAction>(ACTIONS)) {
      const said = await sayAsStudent(action, place, new AbortController().signal);
      if ("reason" in said) {
        found[name] = "not at all";
        continue;
      }
      if (said.leftOut.length > 0) found[name] = said.leftOut.join();
      const { ids, parsed, closed, logprobs } = said.rest.completion;
      assert.ok(closed && stopTokenIds.includes(ids.at(-1)!), "it ends as the model ends it");
      assert.ok(ids.subarray(0, -1).every((id) => !stopTokenIds.includes(id)), "and nowhere before");
      assert.ok(logprobs.every((logprob) => logprob === 0));
      const expected: Record<string, unknown> = { ...action };
      for (const left of said.leftOut) delete expected[left];
      assert.deepEqual(readAction(parsed), { action: expected, droppedCalls: 0 });
      if (said.leftOut.length > 0) continue;
      // Up to its end the text is what the template makes of the whole conversation.
      const reply: Message = {
        role: "assistant",
        content: action.text ?? "",
        reasoning: action.reasoning ?? null,
        toolCalls: action.kind === "message" ? [] : [{
          id: renderer.callId({ name: action.name, priorCalls: 0, random: (digits) => "0".repeat(digits) }),
          name: action.name,
          arguments: JSON.stringify(action.arguments),
        }],
        form: "",
        source: 1,
      };
      const messages = [...conversation.messages, reply];
      const whole = await renderer.renderPrompt({ ...conversation, messages }, { addGenerationPrompt: false });
      const own = tokenizer.decode([...prompt, ...ids.subarray(0, -1)]);
      assert.ok(tokenizer.decode(whole.ids).startsWith(own), `${name}: ${own}`);
    }
    assert.deepEqual(found, EXCEPTIONS[of.name] ?? {});
  });
}
