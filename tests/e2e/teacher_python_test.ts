/** A trainer's own reader: Python's safetensors loads what is answered. Where this machine has none, the test says so. */

import assert from "node:assert/strict";
import { startTaught } from "./teacher.ts";

/** As the README shows it. */
const SNIPPET = `
import json, sys, urllib.request
from safetensors.numpy import load

request = urllib.request.Request(
    sys.argv[1] + "/teacher-score",
    data=json.dumps({"prompt_ids": [9707, 11], "response_ids": [1879, 0, 151645], "top_k": 4, "mask": [1, 0, 1]}).encode(),
    headers={"accept": "application/x-safetensors"},
)
body = urllib.request.urlopen(request).read()
tensors = load(body)
header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
about = json.loads(header["__metadata__"]["verbatim"])

print(json.dumps({
    "types": {name: [str(tensor.dtype), list(tensor.shape)] for name, tensor in sorted(tensors.items())},
    "logprobs": tensors["teacher_log_probs"].tolist(),
    "ids": tensors["teacher_topk_indices"].tolist(),
    "teacher": about["teacher"],
}))
`;

async function python(args: readonly string[]): Promise<string | null> {
  try {
    const { success, stdout } = await new Deno.Command("python3", { args: [...args], stderr: "null" }).output();
    return success ? new TextDecoder().decode(stdout) : null;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return null;
    throw thrown;
  }
}

Deno.test("Python's safetensors loads teacher scores", async (test) => {
  if (
    await python(["-c", "import importlib.util as u; assert u.find_spec('safetensors') and u.find_spec('numpy')"]) ===
      null
  ) {
    await test.step("skipped: python3 with safetensors and numpy is not here", () => {});
    return;
  }
  await using taught = await startTaught();
  const printed = await python(["-c", SNIPPET, taught.gateway.url]);
  assert.ok(printed !== null);
  const { types, logprobs, ids, teacher } = JSON.parse(printed);
  assert.deepEqual(types, {
    scored_mask: ["uint8", [3]],
    tail_mass: ["float32", [3]],
    teacher_log_probs: ["float32", [3]],
    teacher_topk_indices: ["int32", [3, 4]],
    teacher_topk_logprobs: ["float32", [3, 4]],
  });
  const { body } = await taught.gateway.admin("POST", "/teacher-score", {
    prompt_ids: [9707, 11],
    response_ids: [1879, 0, 151645],
    top_k: 4,
    mask: [1, 0, 1],
  });
  assert.deepEqual(logprobs, body.teacher_log_probs.map((value: number | null) => value ?? 0));
  assert.deepEqual(ids, body.teacher_topk_indices.map((row: number[] | null) => row ?? [0, 0, 0, 0]));
  assert.deepEqual(teacher, body.teacher);
});
