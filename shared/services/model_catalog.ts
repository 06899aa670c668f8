/** The models this process serves: those whose tokens we sample and record, and text-level ones for evaluation. */

import { VerbatimError } from "../core/errors.ts";
import type { Engine } from "../ports/engine.ts";
import type { EngineControl } from "../ports/engine_control.ts";
import type { ModelBackend } from "../ports/model_backend.ts";
import type { Renderer } from "../ports/renderer.ts";
import type { Generations } from "./engines/resume_generation.ts";

/** One model of tokens: a renderer and an engine. */
export interface Model {
  readonly name: string;
  readonly renderer: Renderer;
  readonly engine: Engine;
  /** The workers behind the engine. */
  readonly control: EngineControl;
  /** How generations get their turn at the engine, and go on after an abort. */
  readonly generations: Generations;
  /** Prompt and completion together. */
  readonly maxContextTokens: number;
  /** When it was configured, epoch seconds, for model lists. */
  readonly createdAtS: number;
}

/** One model behind an API of text. It has no tokens, so nothing of it is captured, scored or tokenized. */
export interface TextModel {
  readonly name: string;
  readonly backend: ModelBackend;
  /** As of {@linkcode Model}. */
  readonly createdAtS: number;
}

/** What callers say who mean whatever is served. */
const DEFAULT_NAME = "default";

/** Served models by name; the first is the default. Text-level models are only ever meant by their names. */
export class ModelCatalog {
  readonly #models: ReadonlyMap<string, Model>;
  readonly #textModels: ReadonlyMap<string, TextModel>;
  readonly default: Model;

  constructor(models: readonly Model[], textModels: readonly TextModel[] = []) {
    const [first] = models;
    if (first === undefined) throw new VerbatimError("not_ready", "No model is configured");
    this.default = first;
    this.#models = new Map(models.map((model) => [model.name, model]));
    this.#textModels = new Map(textModels.map((model) => [model.name, model]));
    const names = new Set([...this.#models.keys(), ...this.#textModels.keys()]);
    if (names.size < models.length + textModels.length) {
      throw new VerbatimError("not_ready", "Two models are configured by one name");
    }
  }

  /** Every model of tokens, the default first. */
  list(): Model[] {
    return [...this.#models.values()];
  }

  /** Every text-level model. */
  listText(): TextModel[] {
    return [...this.#textModels.values()];
  }

  /**
   * The text-level model that a call means, or null: the one it names, else the one that its task names, unless the call
   * names a model of tokens.
   */
  textModel(wished: string | null | undefined, configured: string | null = null): TextModel | null {
    const named = this.#textModels.get(wished ?? "");
    if (named !== undefined) return named;
    return this.#models.has(wished ?? "") ? null : this.#textModels.get(configured ?? "") ?? null;
  }

  /** The model of tokens of exactly this name, the default one of none; `model_not_found` of any other. */
  named(name: string | null | undefined): Model {
    if (name === null || name === undefined) return this.default;
    const model = this.#models.get(name);
    if (model === undefined) throw this.#notFound(name);
    return model;
  }

  /**
   * Refuses a name that means nothing where text-level models stand beside others: a slip in the name of one would
   * measure another model. Where tokens are captured scaffolds may say what they like; only one model can be meant.
   */
  assertKnown(name: string | null | undefined): void {
    if (name === null || name === undefined || name === DEFAULT_NAME || this.#textModels.size === 0) return;
    if (!this.#models.has(name) && !this.#textModels.has(name)) throw this.#notFound(name);
  }

  /** The model of tokens of this name; a text-level one is `unsupported`. With one model configured any name means it; with several an unknown one is `model_not_found`. */
  resolve(name: string | null | undefined): Model {
    if (this.#textModels.has(name ?? "")) {
      const reason =
        `"${name}" is a text-level backend, for evaluation only: it has no tokens to capture, score or count`;
      throw new VerbatimError("unsupported", `Field "model": ${reason}`, { details: { field: "model", reason } });
    }
    if (name === null || name === undefined || this.#models.size === 1) return this.default;
    const model = this.#models.get(name);
    if (model !== undefined) return model;
    throw this.#notFound(name);
  }

  #notFound(name: string): VerbatimError {
    return new VerbatimError("model_not_found", `There is no model "${name}" here`, {
      details: { field: "model", model: name, models: [...this.#models.keys(), ...this.#textModels.keys()] },
    });
  }
}
