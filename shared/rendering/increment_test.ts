/** Increments of templates with habits of their own. */

import assert from "node:assert/strict";
import type { Message } from "../core/message.ts";
import { compileChatTemplate } from "./chat_template.ts";
import { Increment } from "./increment.ts";
import { plain } from "./jinja/text.ts";
import { PromptTemplate } from "./prompt_template.ts";

/** Calls as a list of objects whose last member is the id, as several published templates write them. */
const ID_LAST = "{%- for message in messages %}" +
  "{%- if message.role == 'user' %}{{- '[INST]' + message.content + '[/INST]' }}" +
  "{%- elif message.role == 'tool' %}{{- '[RESULT]' + message.content + '|' + message.tool_call_id + '[/RESULT]' }}" +
  "{%- elif message.tool_calls %}{{- '[CALLS][' }}{%- for call in message.tool_calls %}" +
  "{%- set out = call.function | tojson %}{{- out[:-1] + ', \"id\": \"' + call.id + '\"}' }}" +
  "{%- if not loop.last %}{{- ', ' }}{%- endif %}{%- endfor %}{{- ']</s>' }}" +
  "{%- else %}{{- message.content + '</s>' }}{%- endif %}{%- endfor %}";

Deno.test("Increment appends the results of one call after the other where the template writes ids after arguments", () => {
  const prompt = new PromptTemplate({
    chatTemplate: compileChatTemplate(ID_LAST, { now: () => 0 }),
    specialTokens: {},
    defaults: {},
  });
  const increment = new Increment(prompt, { stopTexts: ["</s>"] });
  for (const ids of [["first"], ["second"], ["third", "fourth"], ["first"]]) {
    const appended = ids.map((id): Message => ({ role: "tool", toolCallId: id, content: "done", source: 0 }));
    const calls = ids.map((id) => ({ id, name: "run" }));
    const text = plain(increment.render({ appended, tools: [], settings: {}, calls }));
    assert.equal(text, `</s>${ids.map((id) => `[RESULT]done|${id}[/RESULT]`).join("")}`);
  }
});
