/** Names and their values, one scope inside the other. */

import { Undefined, type Value } from "./values.ts";

export class Scope {
  readonly #names = new Map<string, Value>();
  readonly #parent: Scope | null;

  constructor(parent: Scope | null) {
    this.#parent = parent;
  }

  get(name: string): Value {
    const value = this.#names.get(name);
    if (value !== undefined) return value;
    return this.#parent === null ? new Undefined(`'${name}' is undefined`) : this.#parent.get(name);
  }

  set(name: string, value: Value): void {
    this.#names.set(name, value);
  }
}
