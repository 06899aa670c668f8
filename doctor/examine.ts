/** The whole examination: what was found, and everything that was tried. It neither prints nor exits. */

import type { Json } from "../shared/core/message.ts";
import type { Tokenizer } from "../shared/ports/tokenizer.ts";
import { examineModel, type RendererOptions } from "../shared/rendering/create_renderer.ts";
import { type DoctorEngine, engineFindings } from "./engine_findings.ts";
import { failed, type Finding, notChecked, passed, wordsOf } from "./finding.ts";
import { parserFindings } from "./parser_findings.ts";

/** What is examined. */
export interface Patient {
  readonly tokenizer: Tokenizer;
  readonly renderer: Omit<RendererOptions, "tokenizer">;
  readonly engine: DoctorEngine | null;
}

/** The diagnosis. */
export interface Diagnosis {
  /** Lines that name what was found. */
  readonly about: readonly (readonly [name: string, value: string])[];
  readonly findings: readonly Finding[];
  readonly hint: string | null;
  /** Whether nothing failed. */
  readonly healthy: boolean;
}

/** Examines. Nothing but a broken promise of this code itself is thrown. */
export async function examine({ tokenizer, renderer: options, engine }: Patient): Promise<Diagnosis> {
  const about: [string, string][] = [
    [
      "vocabulary",
      `${tokenizer.vocabSize} tokens, ${tokenizer.addedTokens.size} added, ${tokenizer.specialIds.size} special`,
    ],
  ];
  let model;
  try {
    model = examineModel({ ...options, tokenizer });
  } catch (error) {
    return { about, findings: [failed("the chat template can be used", wordsOf(error))], hint: null, healthy: false };
  }
  about.push(
    ["family", model.family],
    ["tool-call parser", model.toolCallParser ?? "none"],
    ["reasoning parser", model.reasoningParser ?? "none"],
  );
  const findings = model.checks.map(({ name, passed: holds, reason, details }): Finding => {
    if (!holds) return failed(name, reason ?? "");
    if (isUnsupported(details)) return notChecked(name, `not supported by the template: ${reason ?? ""}`);
    return passed(name, noteOf(details));
  });
  const { renderer, hint } = model;
  const later = ["parsers", ...(engine === null ? [] : ["engine"])];
  if (renderer === null) {
    findings.push(...later.map((name) => notChecked(name, "the template fails its checks")));
    return { about, findings, hint, healthy: false };
  }
  about.push(["a turn ends in", renderer.stopTokenIds.map((id) => tokenizer.decode([id])).join(" ")]);
  findings.push(...await parserFindings(renderer));
  if (engine === null) findings.push(notChecked("the engine", "none was named (--engine)"));
  else findings.push(...await engineFindings(renderer, engine));
  return { about, findings, hint, healthy: findings.every(({ verdict }) => verdict !== "failed") };
}

function isUnsupported(details: Json | undefined): boolean {
  return isRecord(details) && details["supported"] === false;
}

/** What is true or false of a template, in words. */
const WORDS: Readonly<Record<string, readonly [isTrue: string, isFalse: string]>> = {
  template_is_append_only: ["append-only", "the template rewrites what comes before"],
  kept_before_results: ["kept before results", "dropped before results"],
  kept_before_a_question: ["kept before a question", "dropped before a question"],
};

function noteOf(details: Json | undefined): string {
  if (!isRecord(details)) return "";
  return Object.entries(details).map(([name, value]) => {
    const words = WORDS[name];
    return words === undefined ? `${name.replaceAll("_", " ")} ${String(value)}` : words[value === true ? 0 : 1];
  }).join(", ");
}

function isRecord(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
