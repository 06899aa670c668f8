import assert from "node:assert/strict";
import fc from "fast-check";
import { VerbatimError } from "../../core/errors.ts";
import { tokensLeft } from "./context_length.ts";

Deno.test("tokensLeft clips the wish to what the context leaves", () => {
  fc.assert(
    fc.property(fc.nat(1000), fc.integer({ min: 1, max: 1000 }), fc.option(fc.nat(2000)), (prompt, room, wished) => {
      const left = tokensLeft({ promptTokens: prompt, maxContextTokens: prompt + room, wished });
      assert.equal(left, Math.min(room, wished ?? Infinity));
    }),
  );
});

Deno.test("tokensLeft refuses a prompt that leaves no room for one token, in OpenAI's words", () => {
  const cases = [[100, null, 101], [100, 50, 150], [100, 0, 101], [150, 1, 151]] as const;
  for (const [promptTokens, wished, requested] of cases) {
    assert.throws(() => tokensLeft({ promptTokens, maxContextTokens: 100, wished }), (thrown) => {
      assert.ok(thrown instanceof VerbatimError);
      assert.equal(thrown.code, "context_length_exceeded");
      assert.equal(
        thrown.message,
        `This model's maximum context length is 100 tokens. However, you requested ${requested} tokens ` +
          `(${promptTokens} in the messages, ${requested - promptTokens} in the completion). ` +
          "Please reduce the length of the messages.",
      );
      assert.deepEqual(thrown.details, {
        max_context_tokens: 100,
        prompt_tokens: promptTokens,
        requested_tokens: requested,
      });
      return true;
    });
  }
});
