/** The models this process serves, each a renderer and an engine. */

import { VerbatimError } from "../core/errors.ts";
import type { Engine } from "../ports/engine.ts";
import type { EngineControl } from "../ports/engine_control.ts";
import type { Renderer } from "../ports/renderer.ts";
import type { Generations } from "./resume_generation.ts";

/** One served model. */
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

/** Served models by name; the first is the default. */
export class ModelCatalog {
  readonly #models: ReadonlyMap<string, Model>;
  readonly default: Model;

  constructor(models: readonly Model[]) {
    const [first] = models;
    if (first === undefined) throw new VerbatimError("not_ready", "No model is configured");
    this.default = first;
    this.#models = new Map(models.map((model) => [model.name, model]));
    if (this.#models.size < models.length) {
      throw new VerbatimError("not_ready", "Two models are configured by one name");
    }
  }

  /** Every model, the default first. */
  list(): Model[] {
    return [...this.#models.values()];
  }

  /** The model of this name. With one model configured any name means it; with several an unknown one is `model_not_found`. */
  resolve(name: string | null | undefined): Model {
    if (name === null || name === undefined || this.#models.size === 1) return this.default;
    const model = this.#models.get(name);
    if (model !== undefined) return model;
    throw new VerbatimError("model_not_found", `There is no model "${name}" here`, {
      details: { model: name, models: [...this.#models.keys()] },
    });
  }
}
