/**
 * Which prefixes an SGLang worker would hold in its KV cache: a radix tree over ids, one for each partition, bounded in
 * tokens. It holds no keys or values, only the fact.
 */

interface Node {
  ids: Uint32Array;
  readonly children: Map<number, Node>;
  parent: Node | null;
  lastUse: number;
}

/** A bounded set of prefixes. */
export class RadixCache {
  readonly #capacity: number;
  readonly #roots = new Map<string, Node>();
  #tokens = 0;
  #clock = 0;

  /** `capacity`: tokens held at most; the least recently used branches go first. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Tokens held. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Length of the longest cached prefix of `ids` in the partition. It counts as used. */
  match(partition: string, ids: Uint32Array): number {
    let node = this.#roots.get(partition);
    let matched = 0;
    while (node !== undefined) {
      node.lastUse = ++this.#clock;
      const child: Node | undefined = node.children.get(ids[matched] ?? -1);
      if (child === undefined) break;
      const common = commonLength(child.ids, ids.subarray(matched));
      matched += common;
      child.lastUse = this.#clock;
      if (common < child.ids.length) break;
      node = child;
    }
    return matched;
  }

  /** Holds `ids`; only what no branch has yet is copied. */
  insert(partition: string, ids: Uint32Array): void {
    let node = this.#roots.get(partition);
    if (node === undefined) {
      node = { ids: new Uint32Array(0), children: new Map(), parent: null, lastUse: 0 };
      this.#roots.set(partition, node);
    }
    let at = 0;
    while (at < ids.length) {
      node.lastUse = ++this.#clock;
      const child: Node | undefined = node.children.get(ids[at]!);
      if (child === undefined) {
        const rest = ids.slice(at);
        node.children.set(rest[0]!, { ids: rest, children: new Map(), parent: node, lastUse: this.#clock });
        this.#tokens += rest.length;
        break;
      }
      const common = commonLength(child.ids, ids.subarray(at));
      at += common;
      node = common < child.ids.length ? split(child, common) : child;
      node.lastUse = this.#clock;
    }
    if (this.#tokens > this.#capacity) this.#evict();
  }

  /** Forgets everything. */
  flush(): void {
    this.#roots.clear();
    this.#tokens = 0;
  }

  /** Removes least recently used leaves until a tenth of the capacity is free, so that eviction is rare. */
  #evict(): void {
    const target = this.#capacity * 0.9;
    while (this.#tokens > target) {
      const leaves = this.#leaves().sort((a, b) => a.lastUse - b.lastUse);
      if (leaves.length === 0) break;
      for (const leaf of leaves) {
        if (this.#tokens <= target) break;
        leaf.parent?.children.delete(leaf.ids[0]!);
        this.#tokens -= leaf.ids.length;
      }
    }
    for (const [partition, root] of this.#roots) if (root.children.size === 0) this.#roots.delete(partition);
  }

  #leaves(): Node[] {
    const leaves: Node[] = [];
    const open = [...this.#roots.values()];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (node.children.size === 0 && node.parent !== null) leaves.push(node);
      else for (const child of node.children.values()) open.push(child);
    }
    return leaves;
  }
}

/** Cuts a node in two after `length` ids; the upper part is returned. */
function split(node: Node, length: number): Node {
  const upper: Node = {
    ids: node.ids.slice(0, length),
    children: new Map(),
    parent: node.parent,
    lastUse: node.lastUse,
  };
  node.parent?.children.set(upper.ids[0]!, upper);
  node.ids = node.ids.slice(length);
  node.parent = upper;
  upper.children.set(node.ids[0]!, node);
  return upper;
}

function commonLength(own: Uint32Array, ids: Uint32Array): number {
  const limit = Math.min(own.length, ids.length);
  let common = 0;
  while (common < limit && own[common] === ids[common]) common++;
  return common;
}
