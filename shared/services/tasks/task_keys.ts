/** Task keys: made from a root secret and the task's uid, so that the same task has the same key and none is stored. */

import { createHmac } from "node:crypto";
import type { TaskStore } from "../../ports/task_store.ts";
import { hashKey } from "../../core/hash_key.ts";

/** What every derived key begins with. */
export const TASK_KEY_PREFIX = "vk_";

/** A task's key and the hash under which the task is found. */
export interface TaskKey {
  readonly key: string;
  readonly keyHash: string;
}

/** Derives keys from the store's root secret, which is read once. */
export class TaskKeys {
  readonly #store: Pick<TaskStore, "rootSecret">;
  #secret: Promise<Uint8Array> | null = null;

  constructor(store: Pick<TaskStore, "rootSecret">) {
    this.#store = store;
  }

  /** The key of the task with this uid. */
  async keyOf(uid: string): Promise<TaskKey> {
    this.#secret ??= this.#store.rootSecret();
    let secret: Uint8Array;
    try {
      secret = await this.#secret;
    } catch (cause) {
      this.#secret = null;
      throw cause;
    }
    const key = `${TASK_KEY_PREFIX}${createHmac("sha256", secret).update(`task:${uid}`).digest("base64url")}`;
    return { key, keyHash: hashKey(key) };
  }
}
