/** Rendezvous hashing: which of several nodes a key belongs to, without a table. Pure. */

/**
 * The nodes in the key's order of preference. When a node goes, only its own keys move, each to its next node; when it
 * comes back, they return. The order is the same in every process.
 */
export function rendezvousOrder(key: string, nodes: readonly string[]): string[] {
  const weighed = nodes.map((node) => ({ node, weight: weightOf(key, node) }));
  weighed.sort((a, b) => b.weight - a.weight || (a.node < b.node ? -1 : 1));
  return weighed.map(({ node }) => node);
}

/** FNV-1a over key and node, then the finisher of MurmurHash3: without it nodes that differ in a last digit go in step. */
function weightOf(key: string, node: string): number {
  let hash = 0x811c9dc5;
  const text = `${key}\n${node}`;
  for (let k = 0; k < text.length; k++) hash = Math.imul(hash ^ text.charCodeAt(k), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
