/** The doctor passes every family of the table that is not refused, engine and all, and tells why where one is. */

import assert from "node:assert/strict";
import { doctorEngine } from "../../doctor/compose_doctor.ts";
import { diagnosisText } from "../../doctor/diagnosis_text.ts";
import { examine } from "../../doctor/examine.ts";
import { createEmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import { serveEmbeddedEngine } from "../../shared/engine/serve_embedded_engine.ts";
import { caseTemplate, caseTokenizer } from "./case_renderer.ts";
import { FAMILY_CASES } from "./family_cases.ts";

for (const of of FAMILY_CASES) {
  const verdict = of.refused === undefined ? "passes" : "fails with the reason";
  Deno.test(`${of.name}: the doctor ${verdict}`, async () => {
    const tokenizer = await caseTokenizer(of);
    const chatTemplate = await caseTemplate(of);
    const served = serveEmbeddedEngine(createEmbeddedEngine({ tokenizer, modelName: of.name, maxContextTokens: 8192 }));
    try {
      const engine = doctorEngine({ engine: served.url, apiKey: null }, tokenizer.vocabSize);
      const renderer = chatTemplate === null ? {} : { chatTemplate };
      const diagnosis = await examine({ tokenizer, renderer, engine });
      const text = diagnosisText(diagnosis);
      assert.equal(diagnosis.healthy, of.refused === undefined, text);
      if (of.refused !== undefined) assert.match(text, /^FAILED +a tool result can be appended/m);
    } finally {
      await served.close();
    }
  });
}
