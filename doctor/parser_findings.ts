/** Whether the parsers read what the template itself writes of a reply. It asks no engine. */

import type { AssistantMessage } from "../shared/core/message.ts";
import type { Renderer } from "../shared/ports/renderer.ts";
import { failed, type Finding, notChecked, passed, wordsOf } from "./finding.ts";
import { PROBE_ARGUMENTS, PROBE_TOOL, probeQuestion, probeReply } from "./probe_conversation.ts";

/** One finding for calls, one for reasoning. */
export async function parserFindings(renderer: Renderer): Promise<Finding[]> {
  const [calls, reasoning] = [
    "the tool-call parser reads the template's call",
    "the reasoning parser reads the template's",
  ];
  if (renderer.toolCallParser === null) {
    const note = "no tool-call parser: calls are plain text to this model";
    return [notChecked(calls, note), notChecked(reasoning, renderer.reasoningParser === null ? "none" : note)];
  }
  const answer = probeReply(renderer);
  let said;
  try {
    said = await saidText(renderer, answer);
  } catch (error) {
    return [failed(calls, wordsOf(error)), notChecked(reasoning, "the reply can't be rendered")];
  }
  if (said === null) {
    const note = "the template writes a reply otherwise once it is history, so its text is not what is sampled";
    return [notChecked(calls, note), notChecked(reasoning, note)];
  }
  const parser = renderer.parser({ tools: [PROBE_TOOL], toolChoice: "auto", opensReasoning: said.opensReasoning });
  parser.push(said.text);
  parser.finish();
  const found = parser.result();
  const written = JSON.stringify(said.text);
  const isCall = found.toolCalls.length === 1 && found.toolCalls[0]?.name === PROBE_TOOL.name &&
    sameArguments(found.toolCalls[0].arguments);
  const findings = [
    isCall ? passed(calls) : failed(
      calls,
      `${renderer.toolCallParser} finds ${JSON.stringify(found.toolCalls)} and the text ${
        JSON.stringify(found.content)
      } in ${written}`,
    ),
  ];
  if (renderer.reasoningParser === null) findings.push(notChecked(reasoning, "no reasoning parser"));
  else if (answer.reasoning !== null && !said.text.includes(answer.reasoning)) {
    findings.push(notChecked(reasoning, "the template does not write reasoning"));
  } else if (found.reasoning?.trim() === answer.reasoning) findings.push(passed(reasoning));
  else {
    findings.push(
      failed(reasoning, `${renderer.reasoningParser} finds ${JSON.stringify(found.reasoning)} in ${written}`),
    );
  }
  return findings;
}

/** What the model would have sampled for this reply; null where the template does not write it behind its prompt. */
async function saidText(
  renderer: Renderer,
  answer: AssistantMessage,
): Promise<{ text: string; opensReasoning: boolean } | null> {
  const before = { messages: [probeQuestion()], tools: [PROBE_TOOL], settings: {} };
  const prompt = await renderer.renderPrompt(before);
  const after = await renderer.renderPrompt({ ...before, messages: [...before.messages, answer] }, {
    addGenerationPrompt: false,
  });
  const [promptText, whole] = [renderer.tokenizer.decode(prompt.ids), renderer.tokenizer.decode(after.ids)];
  if (!whole.startsWith(promptText)) return null;
  return { text: whole.slice(promptText.length).trimEnd(), opensReasoning: prompt.opensReasoning };
}

function sameArguments(text: string): boolean {
  const found: unknown = JSON.parse(text);
  return typeof found === "object" && found !== null &&
    JSON.stringify(Object.entries(found).sort()) === JSON.stringify(Object.entries(PROBE_ARGUMENTS).sort());
}
