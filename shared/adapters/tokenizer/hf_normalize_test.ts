/** Normalization against the host's own, over every mark there is. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { type NormalizationForm, normalizeText } from "./hf_normalize.ts";

const FORMS: readonly NormalizationForm[] = ["NFC", "NFD", "NFKC", "NFKD"];
const MARKS: string[] = [];
for (let code = 0; code < 0x20000; code++) {
  const char = String.fromCodePoint(code);
  if (/[\p{M}\uff9e\uff9f]/u.test(char)) MARKS.push(char);
}

Deno.test("normalizeText gives what the host gives, whatever marks follow each other", () => {
  const run = fc.array(fc.constantFrom(...MARKS), { minLength: 60, maxLength: 400 }).map((marks) => marks.join(""));
  const text = fc.array(fc.oneof(run, fc.string({ unit: "binary" }), fc.constantFrom("é", "ã", "각", "\ud800")))
    .map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(text, fc.constantFrom(...FORMS), (given, form) => {
      assert.equal(normalizeText(given, form), given.normalize(form));
    }),
    { numRuns: 200 },
  );
});

Deno.test("normalizeText takes time that grows with the text, though its marks stand out of order", () => {
  // The host alone takes minutes for this one.
  const marks = 400_000;
  const text = `e${"\u0301\u0316".repeat(marks / 2)}`;
  assert.equal(
    normalizeText(text, "NFC"),
    `e${"\u0316".repeat(marks / 2)}${"\u0301".repeat(marks / 2)}`.normalize("NFC"),
  );
});
