/** A conversation in which student and teacher act: what each of them says, and an agent that goes on with whatever came. */

import assert from "node:assert/strict";
import type { Script } from "../../shared/engine/script.ts";
import type { Body, CreatedTask, HarnessOptions } from "./harness.ts";
import { user } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";
import { startTaught, type TaughtHarness } from "./teacher.ts";

/** What the agent offers. */
export const TOOLS = [tool("run", ["command"])];

/** The teacher's action at the request that names this step. */
export function teachersCall(step: string): string {
  return think(`Step ${step}.`) + `I do ${step}.\n` + toolCall("run", { command: `make ${step} < "in"` });
}

/** Both go by the number of the step in the newest message: the student says something, the teacher runs something. */
function acting(act: (step: string) => string): Script {
  return {
    rules: [{
      match: /\bstep \w+/,
      retrigger: true,
      completions: [({ newest }) => act([...newest.matchAll(/\bstep (\w+)/g)].at(-1)?.[1] ?? "")],
    }],
  };
}

/** A gateway whose student says `Student N.` at step N, and whose teacher calls a tool. */
export function startActors(options: HarnessOptions = {}): Promise<TaughtHarness> {
  return startTaught({
    ...options,
    engine: { script: acting((step) => `Student ${step}.`), ...options.engine },
    teacher: { script: acting(teachersCall) },
  });
}

/** The messages after a reply: it itself, and the tool's result or the user's next word. */
export function goOn(message: Body, step: number): Body[] {
  const content = `step ${step}`;
  const calls: Body[] = message.tool_calls ?? [];
  const results = calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content }));
  return [message, ...(results.length === 0 ? [user(content)] : results)];
}

/** Plays so many turns of a task in chat; the messages, the last reply among them. */
export async function play(
  { gateway }: TaughtHarness,
  task: CreatedTask,
  options: { readonly turns: number; readonly before?: readonly Body[] },
): Promise<Body[]> {
  let messages: Body[] = [...options.before ?? [], user("step 0")];
  for (let turn = 0; turn < options.turns; turn++) {
    const { status, body } = await gateway.chat(task.key, { messages, tools: TOOLS, max_tokens: 200 });
    assert.equal(status, 200, JSON.stringify(body));
    messages = [...messages, ...goOn(body.choices[0].message, turn + 1)];
  }
  return messages.slice(0, -1);
}

/** Whose the turns of a task were, in order. */
export async function actors({ gateway }: TaughtHarness, task: CreatedTask): Promise<string[]> {
  return (await gateway.turns(task.id)).map(({ actor }) => actor);
}
