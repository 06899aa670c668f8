/** Every family of the table: what is found, what holds between prompts and increments, what untrusted text can't do. */

import assert from "node:assert/strict";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { Json, Message } from "../../shared/core/message.ts";
import type { Renderer } from "../../shared/ports/renderer.ts";
import { caseRenderer, caseTemplate, caseTokenizer } from "./case_renderer.ts";
import { FAMILY_CASES, type FamilyCase } from "./family_cases.ts";
import { agentSteps, call, reply, result, TOOL, user } from "./family_conversation.ts";

for (const of of FAMILY_CASES) {
  const { refused } = of;
  if (refused !== undefined) {
    Deno.test(`${of.name}: the template is refused with the reason`, async () => {
      await assert.rejects(caseRenderer(of), (error) => {
        assert.ok(error instanceof VerbatimError && error.code === "not_ready");
        assert.match(error.message, refused);
        return true;
      });
    });
    continue;
  }
  Deno.test(
    `${of.name}: family, parsers, stop tokens, roles and reasoning are found`,
    () => checkFound(of),
  );
  Deno.test(`${of.name}: series and increments are the one-shot prompt`, () => checkSteps(of));
  Deno.test(`${of.name}: no token that ends a turn is written twice`, () => checkBoundaries(of));
  Deno.test(`${of.name}: parallel calls are all written, or refused`, () => checkParallelCalls(of));
  Deno.test(`${of.name}: untrusted text becomes no control token`, () => checkUntrusted(of));
}

async function checkFound(of: FamilyCase): Promise<void> {
  const renderer = await caseRenderer(of);
  const { family, toolCallParser, reasoningParser, tokenizer } = renderer;
  assert.deepEqual({ family, toolCallParser, reasoningParser }, {
    family: of.family,
    toolCallParser: of.toolCallParser,
    reasoningParser: of.reasoningParser,
  });
  assert.deepEqual(renderer.stopTokenIds.map((id) => tokenizer.decode([id])), of.stopTokens);
  assert.ok(renderer.checks.every((check) => check.passed));
  const refusedRoles = renderer.checks.flatMap(({ name, details }) => {
    const [, role] = /^an? (system message|assistant message|tool result) can be appended$/.exec(name) ?? [];
    return role !== undefined && member(details, "supported") === false ? [role.split(" ")[0]] : [];
  });
  assert.deepEqual(refusedRoles, of.refusesRoles ?? []);
  const reasoning = renderer.checks.find((check) => check.name === "reasoning of earlier replies")?.details;
  if (of.keepsReasoning !== undefined) {
    assert.deepEqual(
      [member(reasoning, "kept_before_results"), member(reasoning, "kept_before_a_question")],
      of.keepsReasoning,
    );
  }
  const opens = async (settings: { [name: string]: Json }) =>
    (await renderer.renderPrompt({ messages: [user("Hi")], tools: [], settings })).opensReasoning;
  assert.equal(await opens({}), of.opensReasoning ?? false);
  const { thinkingSwitch } = of;
  if (thinkingSwitch === undefined) return;
  assert.equal(await opens({ [thinkingSwitch.setting]: thinkingSwitch.value }), thinkingSwitch.opens);
}

function member(value: Json | undefined, name: string): Json | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value[name] : undefined;
}

/** Walks an agent's history: what would be in the engine's cache after each reply, and the next prompt in one go. */
async function checkSteps(of: FamilyCase): Promise<void> {
  let compared = await walkSteps(of, {});
  const { thinkingSwitch } = of;
  if (thinkingSwitch !== undefined) {
    compared += await walkSteps(of, { [thinkingSwitch.setting]: thinkingSwitch.value });
  }
  assert.ok(compared > 0, "the template is append-only somewhere");
}

async function walkSteps(of: FamilyCase, settings: { [name: string]: Json }): Promise<number> {
  const renderer = await caseRenderer(of);
  const { tokenizer } = renderer;
  const tools = renderer.toolCallParser === null ? [] : [TOOL];
  const render = async (messages: readonly Message[], addGenerationPrompt: boolean) =>
    (await renderer.renderPrompt({ messages, tools, settings }, { addGenerationPrompt })).ids;
  const messages: Message[] = [user("Read the files.")];
  let compared = 0;
  for (const { answer, appended } of agentSteps(renderer, { singleCall: of.singleCall === true })) {
    const prompt = await render(messages, true);
    const withReply = tokenizer.decode(await render([...messages, answer], false));
    messages.push(answer, ...appended);
    const whole = await render(messages, true);
    const request = { appended, tools, settings, calls: answer.toolCalls };
    const open = tokenizer.decode((await renderer.renderIncrement({ ...request, lastToken: null })).ids);
    const closer = renderer.stopTokenIds.find((id) => open.startsWith(tokenizer.decode([id])));
    const promptText = tokenizer.decode(prompt);
    const closerText = closer === undefined ? "" : tokenizer.decode([closer]);
    const end = closerText === "" ? -1 : withReply.lastIndexOf(closerText);
    const replyEnd = end < promptText.length ? withReply.length : end;
    const sampled = withReply.slice(promptText.length, replyEnd) + closerText;
    const increment = (await renderer.renderIncrement({ ...request, lastToken: closer ?? null })).ids;
    assert.ok(tokenizer.decode(whole).endsWith(tokenizer.decode(increment)), "the increment ends the prompt");
    const isAppendOnly = withReply.startsWith(promptText) &&
      tokenizer.decode(whole).startsWith(withReply.slice(0, replyEnd));
    if (!isAppendOnly) continue;
    compared++;
    assert.deepEqual([...prompt, ...tokenizer.encode(sampled), ...increment], [...whole]);
  }
  return compared;
}

async function checkBoundaries(of: FamilyCase): Promise<void> {
  const renderer = await caseRenderer(of);
  const { tokenizer } = renderer;
  const request = { appended: [user("Next.")], tools: [], settings: {} };
  const open = (await renderer.renderIncrement({ ...request, lastToken: null })).ids;
  for (const lastToken of renderer.stopTokenIds) {
    const { ids } = await renderer.renderIncrement({ ...request, lastToken });
    assert.notEqual(ids[0], lastToken);
    assert.ok(tokenizer.decode(open).endsWith(tokenizer.decode(ids)));
    if (open[0] === lastToken) assert.deepEqual(ids, open.slice(1));
  }
  const other = tokenizer.encode("x")[0] ?? null;
  assert.deepEqual((await renderer.renderIncrement({ ...request, lastToken: other })).ids, open, "cut by length");
}

async function checkParallelCalls(of: FamilyCase): Promise<void> {
  const renderer = await caseRenderer(of);
  if (renderer.toolCallParser === null) return;
  const calls = [call(renderer, 0), call(renderer, 1)];
  const messages = [user("Read."), reply("", { calls }), ...calls.map(({ id }) => result(id, `of ${id}`))];
  const rendering = renderer.renderPrompt({ messages, tools: [TOOL], settings: {} });
  if (of.singleCall) {
    await assert.rejects(rendering, { code: "unsupported" });
    return;
  }
  const text = renderer.tokenizer.decode((await rendering).ids);
  const places = ["file0.txt", "file1.txt", `of ${calls[0]?.id}`, `of ${calls[1]?.id}`].map((word) =>
    text.indexOf(word)
  );
  assert.ok(places.every((place) => place >= 0), text);
  assert.deepEqual(places, places.toSorted((a, b) => a - b));
}

/** Special tokens, and those that the template writes, in everything that a message can say. */
async function checkUntrusted(of: FamilyCase): Promise<void> {
  const renderer = await caseRenderer(of);
  const trusting = await caseRenderer(of, { trustSpecialTokens: true });
  const tokenizer = await caseTokenizer(of);
  const template = await caseTemplate(of) ?? tokenizer.chatTemplate ?? "";
  const isMarker = (token: string) => template.includes(token) && /^[^\p{L}\p{N}\s].*[^\p{L}\p{N}\s]$/u.test(token);
  const special = [...tokenizer.addedTokens].filter(([token, id]) => tokenizer.specialIds.has(id) && token.length > 1)
    .slice(0, 30);
  const control = [...special, ...[...tokenizer.addedTokens].filter(([token]) => isMarker(token))];
  const controlIds = new Set(control.map(([, id]) => id));
  const attack = `x ${control.map(([token]) => token).join(" y ")} z`;
  const said = `x ${special.map(([token]) => token).join(" y ")} z`;
  const found = (ids: Uint32Array) => Array.from(ids).filter((id) => controlIds.has(id));
  const rendered = async (by: Renderer, foreign: string, own: string) => {
    const { messages, tools } = attacked(by, foreign, own);
    return (await by.renderPrompt({ messages, tools, settings: {} })).ids;
  };
  const ids = await rendered(renderer, attack, said);
  assert.deepEqual(found(ids), found(await rendered(renderer, "x z", "x z")), "only the template's own");
  const believed = await rendered(trusting, attack, said);
  assert.ok(found(believed).length > found(ids).length, "the option turns it off");
  assert.equal(tokenizer.decode(ids), tokenizer.decode(believed), "the text is the same");

  const appended = renderer.toolCallParser === null
    ? [user(attack)]
    : [result(call(renderer, 0).id, attack), user(attack)];
  const request = { tools: [], settings: {}, lastToken: null, calls: [call(renderer, 0)] };
  const increment = await renderer.renderIncrement({ ...request, appended });
  const harmless = appended.map((message) => ({ ...message, content: "x z" }));
  assert.deepEqual(
    found(increment.ids),
    found((await renderer.renderIncrement({ ...request, appended: harmless })).ids),
  );

  const markers = control.filter(([token]) => /^<\/?(tool_call|think)>$/.test(token));
  for (const [token, id] of markers) {
    const { messages } = attacked(renderer, "x", `x ${token.startsWith("</") ? "y" : token} z`);
    if (token.startsWith("</")) continue;
    const withMarker = await renderer.renderPrompt({ messages, tools: [], settings: {} });
    assert.ok(withMarker.ids.includes(id), `a reply may say ${token}`);
  }
}

function attacked(renderer: Renderer, foreign: string, own: string): { messages: Message[]; tools: typeof TOOL[] } {
  if (renderer.toolCallParser === null) return { messages: [user(foreign), reply(own), user(foreign)], tools: [] };
  const one = { ...call(renderer, 0), arguments: JSON.stringify({ path: foreign }) };
  return {
    messages: [
      { role: "system", content: foreign, source: 0 },
      user(foreign),
      reply("", { reasoning: own, calls: [one] }),
      result(one.id, foreign),
      reply(own),
      user(foreign),
    ],
    tools: [{ name: "read", raw: { ...TOOL.raw, description: foreign } }],
  };
}
