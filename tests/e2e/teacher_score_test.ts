/** `POST /teacher-score` before an embedded teacher: what it answers, in both forms, and what it refuses. */

import assert from "node:assert/strict";
import { k3 } from "../../shared/core/k3.ts";
import { generate } from "../fixtures/engine_client.ts";
import { packagedTokenizerFolder } from "../../shared/adapters/tokenizer/packaged_tokenizer.ts";
import { writeByteTokenizer } from "../fixtures/byte_tokenizer_folder.ts";
import { byteTokenizer } from "../fixtures/byte_tokenizer.ts";
import { type Body, startHarness } from "./harness.ts";
import { readSafetensors, startTaught, startTeacher, type TaughtHarness } from "./teacher.ts";

const PROMPT = [9707, 11, 1879, 0];
const RESPONSE = [151644, 872, 198, 13048, 151645];

let taught: TaughtHarness;

Deno.test.beforeAll(async () => {
  taught = await startTaught();
});
Deno.test.afterAll(async () => {
  await taught[Symbol.asyncDispose]();
});

async function score(body: Record<string, unknown>): Promise<Body> {
  const answer = await taught.gateway.admin("POST", "/teacher-score", {
    prompt_ids: PROMPT,
    response_ids: RESPONSE,
    ...body,
  });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

async function refusal(body: Record<string, unknown>): Promise<Body> {
  const { status, body: answer } = await taught.gateway.admin("POST", "/teacher-score", {
    prompt_ids: PROMPT,
    response_ids: RESPONSE,
    ...body,
  });
  return { status, ...answer.error };
}

Deno.test("teacher-score tells the teacher's logprobs, top lists, tail mass and chosen ids", async () => {
  const answer = await score({ top_k: 3, token_ids: [0, 151645] });
  const direct = await generate(taught.teacher.engine, {
    input_ids: [...PROMPT, ...RESPONSE],
    sampling_params: { max_new_tokens: 1, temperature: 0 },
    return_logprob: true,
    logprob_start_len: 0,
    top_logprobs_num: 3,
    token_ids_logprob: [0, 151645],
  });
  const meta = direct.meta_info;
  const from = PROMPT.length;
  assert.deepEqual(answer.teacher_log_probs, meta.input_token_logprobs!.slice(from).map(([logprob]) => logprob));
  const top = meta.input_top_logprobs!.slice(from);
  assert.deepEqual(answer.teacher_topk_indices, top.map((row) => row!.map(([, id]) => id)));
  assert.deepEqual(answer.teacher_topk_logprobs, top.map((row) => row!.map(([logprob]) => logprob)));
  const chosen = meta.input_token_ids_logprobs!.slice(from);
  assert.deepEqual(answer.token_ids_logprobs, chosen.map((row) => row!.map(([logprob]) => logprob)));
  for (const [k, mass] of answer.tail_mass.entries()) {
    const sum = answer.teacher_topk_logprobs[k].reduce((total: number, value: number) => total + Math.exp(value), 0);
    assert.ok(Math.abs(mass - (1 - sum)) < 1e-12);
  }
  assert.deepEqual(answer.teacher, { model: "teacher", weight_version: "t1" });
  assert.equal("k3" in answer, false);
  assert.equal((await score({})).teacher_topk_indices[0].length, 20);
  assert.deepEqual((await score({ top_k: 0 })).tail_mass, [1, 1, 1, 1, 1]);
});

Deno.test("teacher-score has null where the mask is 0, and tensors have 0 under scored_mask", async () => {
  const whole = await score({ top_k: 2, token_ids: [7] });
  const mask = [0, 1, 0, 1, 1];
  const student = [null, -1, 5, -2, -3];
  const answer = await score({ top_k: 2, token_ids: [7], mask, student_log_probs: student });
  for (
    const name of [
      "teacher_log_probs",
      "teacher_topk_indices",
      "teacher_topk_logprobs",
      "tail_mass",
      "token_ids_logprobs",
    ]
  ) {
    assert.deepEqual(answer[name], whole[name].map((value: unknown, k: number) => mask[k] === 1 ? value : null), name);
  }
  const expected = whole.teacher_log_probs.map((value: number, k: number) =>
    mask[k] === 1 ? k3(value, student[k]!) : null
  );
  assert.deepEqual(answer.k3, expected);
  const mean = (expected[1] + expected[3] + expected[4]) / 3;
  assert.ok(Math.abs(answer.k3_reduced - mean) <= 1e-9 * mean);

  const response = await fetch(`${taught.gateway.url}/teacher-score`, {
    method: "POST",
    headers: { accept: "application/x-safetensors" },
    body: JSON.stringify({
      prompt_ids: PROMPT,
      response_ids: RESPONSE,
      top_k: 2,
      token_ids: [7],
      mask,
      student_log_probs: student,
    }),
  });
  assert.equal(response.headers.get("content-type"), "application/x-safetensors");
  const { tensors, metadata } = readSafetensors(new Uint8Array(await response.arrayBuffer()));
  assert.deepEqual(tensors.scored_mask, { dtype: "U8", shape: [5], values: mask });
  const zero = (name: string, empty: unknown) =>
    answer[name].map((value: unknown) => value ?? empty).flat().map((value: number) => Math.fround(value));
  assert.deepEqual(tensors.teacher_log_probs, { dtype: "F32", shape: [5], values: zero("teacher_log_probs", 0) });
  assert.deepEqual(tensors.teacher_topk_indices, {
    dtype: "I32",
    shape: [5, 2],
    values: zero("teacher_topk_indices", [0, 0]),
  });
  assert.deepEqual(tensors.teacher_topk_logprobs, {
    dtype: "F32",
    shape: [5, 2],
    values: zero("teacher_topk_logprobs", [0, 0]),
  });
  assert.deepEqual(tensors.tail_mass, { dtype: "F32", shape: [5], values: zero("tail_mass", 0) });
  assert.deepEqual(tensors.token_ids_logprobs!.shape, [5, 1]);
  assert.deepEqual(tensors.k3, {
    dtype: "F64",
    shape: [5],
    values: answer.k3.map((value: number | null) => value ?? 0),
  });
  const { k3_reduced, k3_reduction, teacher } = answer;
  assert.deepEqual(JSON.parse(metadata.verbatim!), { k3_reduced, k3_reduction, teacher });
});

Deno.test("teacher-score works K3 out for the raw basis, clipped and reduced as asked for", async () => {
  const student = [-1, -40, -0.5, -2, -3];
  const plain = await score({ top_k: 0, student_log_probs: student });
  const expected = plain.teacher_log_probs.map((value: number, k: number) => k3(value, student[k]!));
  assert.deepEqual(plain.k3, expected);
  const summed = await score({ top_k: 0, student_log_probs: student, k3: { clip: 1, reduction: "sum" } });
  const clipped = plain.teacher_log_probs.map((value: number, k: number) => k3(value, student[k]!, { clip: 1 }));
  assert.deepEqual(summed.k3, clipped);
  const total = clipped.reduce((sum: number, value: number) => sum + value, 0);
  assert.ok(Math.abs(summed.k3_reduced - total) <= 1e-9 * total);
  assert.equal((await score({ top_k: 0, student_log_probs: student, k3: { reduction: "none" } })).k3_reduced, null);

  for (const basis of [{ temperature: 0.7 }, { penalties: true }, { constrained: true }]) {
    const { status, code } = await refusal({ student_log_probs: student, student_basis: basis });
    assert.deepEqual([status, code], [422, "basis_mismatch"]);
  }
  const allowed = await score({
    top_k: 0,
    student_log_probs: student,
    student_basis: { temperature: 0.7 },
    allow_mixed_basis: true,
  });
  assert.deepEqual(allowed.k3, expected);
  const raw = { temperature: 1, top_p: 0.9, top_k: 50, min_p: 0, penalties: false, constrained: false };
  assert.deepEqual((await score({ top_k: 0, student_log_probs: student, student_basis: raw })).k3, expected);
});

Deno.test("teacher-score refuses what can't be scored, naming the field", async () => {
  const cases: [body: Record<string, unknown>, status: number, code: string, field?: string][] = [
    [{ prompt_ids: [] }, 400, "invalid_request", "prompt_ids"],
    [{ response_ids: [] }, 400, "invalid_request", "response_ids"],
    [{ response_ids: [1, 200_000] }, 400, "token_out_of_range", "response_ids.1"],
    [{ prompt_ids: [-1] }, 400, "token_out_of_range", "prompt_ids.0"],
    [{ token_ids: [151_936_000] }, 400, "token_out_of_range", "token_ids.0"],
    [{ top_k: 1025 }, 400, "invalid_request", "top_k"],
    [{ mask: [1, 1] }, 400, "invalid_request", "mask"],
    [{ mask: [1, 1, 2, 1, 1] }, 400, "invalid_request", "mask.2"],
    [{ student_log_probs: [-1] }, 400, "invalid_request", "student_log_probs"],
    [{ student_log_probs: [-1, -1, null, -1, -1] }, 400, "invalid_request", "student_log_probs.2"],
    [{ k3: {} }, 400, "invalid_request", "k3"],
    [{ temperature: 1 }, 400, "unknown_field", "temperature"],
  ];
  for (const [body, status, code, field] of cases) {
    const answer = await refusal(body);
    assert.deepEqual([answer.status, answer.code, answer.details?.field], [status, code, field], JSON.stringify(body));
  }
});

Deno.test("teacher-score scores a sequence that fills the teacher's context, and none beyond", async () => {
  await using small = await startTaught({ teacher: { maxContextTokens: 64 } });
  const ids = Array.from({ length: 64 }, (_, k) => 1000 + k);
  const whole = await taught.gateway.admin("POST", "/teacher-score", {
    prompt_ids: ids.slice(0, 60),
    response_ids: ids.slice(60),
    top_k: 4,
    token_ids: [5],
  });
  for (const [cut, mask] of [[60, undefined], [63, undefined], [60, [1, 0, 1, 0]]] as const) {
    const body = { prompt_ids: ids.slice(0, cut), response_ids: ids.slice(cut), top_k: 4, token_ids: [5] };
    const full = await small.gateway.admin("POST", "/teacher-score", mask === undefined ? body : { ...body, mask });
    assert.equal(full.status, 200, JSON.stringify(full.body));
    for (
      const name of [
        "teacher_log_probs",
        "teacher_topk_indices",
        "teacher_topk_logprobs",
        "tail_mass",
        "token_ids_logprobs",
      ]
    ) {
      const expected = whole.body[name].slice(cut - 60);
      assert.deepEqual(
        full.body[name],
        expected.map((value: unknown, k: number) => mask?.[k] === 0 ? null : value),
        name,
      );
    }
  }
  const beyond = await small.gateway.admin("POST", "/teacher-score", { prompt_ids: ids, response_ids: [1] });
  assert.deepEqual([beyond.status, beyond.body.error.code], [400, "context_length_exceeded"]);
});

Deno.test("without a teacher its endpoints say which variable to set", async () => {
  await using harness = await startHarness();
  const { status, body } = await harness.admin("POST", "/teacher-score", { prompt_ids: [1], response_ids: [2] });
  assert.deepEqual([status, body.error.code], [503, "not_ready"]);
  assert.match(body.error.message, /TEACHER_SGLANG_URL/);
});

Deno.test("a teacher whose tokenizer is named and is the student's is taken, in its own format", async () => {
  const environment = { TEACHER_TOKENIZER: await packagedTokenizerFolder(), TEACHER_FORMAT: "hermes" };
  await using named = await startTaught({ environment });
  const { status } = await named.gateway.admin("POST", "/teacher-score", { prompt_ids: [1], response_ids: [2] });
  assert.equal(status, 200);
});

Deno.test("a teacher of another vocabulary, or none that answers, stops the start", async () => {
  await using other = await startTeacher({ tokenizer: byteTokenizer() });
  const environment = { TEACHER_SGLANG_URL: other.served.url, DISTILL_TEACHER_RETRIES: "0" };
  await assert.rejects(startHarness({ environment }), { code: "vocabulary_mismatch", message: /TEACHER_SGLANG_URL/ });
  const folder = await Deno.makeTempDir();
  await writeByteTokenizer(folder);
  await using good = await startTeacher();
  const otherFiles = { TEACHER_SGLANG_URL: good.served.url, TEACHER_TOKENIZER: folder };
  await assert.rejects(startHarness({ environment: otherFiles }), {
    code: "vocabulary_mismatch",
    message: /TEACHER_TOKENIZER/,
  });
  await Deno.remove(folder, { recursive: true });
  await using broken = await startTeacher();
  broken.engine.faults.add({ fault: { kind: "input_logprobs", problem: "short" } });
  const brokenAt = { TEACHER_SGLANG_URL: broken.served.url, DISTILL_TEACHER_RETRIES: "0" };
  await assert.rejects(startHarness({ environment: brokenAt }), { code: "teacher_failed" });
  const nobody = { TEACHER_SGLANG_URL: "http://127.0.0.1:9" };
  await assert.rejects(startHarness({ environment: nobody }), { code: "teacher_failed", message: /does not answer/ });
});

Deno.test("operators see the teacher: who it is, whether it is reached, and what it was asked for", async () => {
  await using own = await startTaught();
  const { gateway, teacher } = own;
  const asks = { prompt_ids: PROMPT, response_ids: RESPONSE };
  teacher.engine.faults.add({ fault: { kind: "input_logprobs", problem: "short" }, when: { times: 1 } });
  assert.equal((await gateway.admin("POST", "/teacher-score", asks)).status, 200);
  const { body } = await gateway.admin("GET", "/readyz");
  assert.deepEqual([body.ready, body.teacher.reachable, body.teacher.weight_version], [true, true, "t1"]);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  // The probe at the start is a sequence, too.
  assert.match(metrics, /verbatim_teacher_sequences_total\{outcome="scored"\} 2\n/);
  assert.match(metrics, /verbatim_teacher_retries_total 1\n/);
  await teacher.served.close();
  const away = await gateway.admin("GET", "/readyz");
  assert.deepEqual([away.status, away.body.ready, away.body.teacher.reachable], [200, true, false]);
  assert.equal(typeof away.body.teacher.reason, "string");
});
