/** A KV database that tells what it was asked for, and that can be made to fail. */

export interface SeenCommit {
  readonly checks: readonly Deno.AtomicCheck[];
  readonly sets: readonly { key: Deno.KvKey; expireIn: number | undefined; bytes: number }[];
  readonly deletes: readonly Deno.KvKey[];
}

export interface KvSpy {
  readonly kv: Deno.Kv;
  readonly commits: SeenCommit[];
  /** Names of the reading methods called, in order. */
  readonly reads: string[];
  /** Called before each commit; what it throws is what the commit throws. */
  onCommit: (commit: SeenCommit) => void | Promise<void>;
  /** Called before each read; what it throws is what the read throws. */
  onRead: (method: string, argument: unknown) => void;
  /** Whether the answer of this commit is lost on the way: it happened, and is reported as failed. */
  losesAnswer: (commit: SeenCommit) => boolean;
}

const READS: ReadonlySet<PropertyKey> = new Set(["get", "getMany", "list"]);

export function spyOnKv(kv: Deno.Kv): KvSpy {
  const spy = {
    commits: [] as SeenCommit[],
    reads: [] as string[],
    onCommit: (_commit: SeenCommit): void | Promise<void> => {},
    onRead: (_method: string, _argument: unknown): void => {},
    losesAnswer: (_commit: SeenCommit): boolean => false,
  };
  const proxy = new Proxy(kv, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => {
        if (property === "atomic") return spyOnAtomic(target.atomic(), spy);
        if (READS.has(property)) {
          spy.reads.push(String(property));
          spy.onRead(String(property), given[0]);
        }
        return value.apply(target, given);
      };
    },
  });
  return Object.assign(spy, { kv: proxy });
}

function spyOnAtomic(
  atomic: Deno.AtomicOperation,
  spy: Pick<KvSpy, "commits" | "onCommit" | "losesAnswer">,
): Deno.AtomicOperation {
  const seen = {
    checks: [] as Deno.AtomicCheck[],
    sets: [] as { key: Deno.KvKey; expireIn: number | undefined; bytes: number }[],
    deletes: [] as Deno.KvKey[],
  };
  return new Proxy(atomic, {
    get(target, property) {
      switch (property) {
        case "check":
          return (...checks: Deno.AtomicCheck[]) => {
            seen.checks.push(...checks);
            return target.check(...checks);
          };
        case "set":
          return (key: Deno.KvKey, value: Uint8Array, options?: { expireIn?: number }) => {
            seen.sets.push({ key, expireIn: options?.expireIn, bytes: value.byteLength });
            return target.set(key, value, options);
          };
        case "delete":
          return (key: Deno.KvKey) => {
            seen.deletes.push(key);
            return target.delete(key);
          };
        case "commit":
          return async () => {
            spy.commits.push(seen);
            await spy.onCommit(seen);
            const result = await target.commit();
            return spy.losesAnswer(seen) ? { ok: false } : result;
          };
        default:
          return Reflect.get(target, property, target);
      }
    },
  });
}
