/** Reading the parser's syntax tree: what a node has, checked. It does not know what nodes mean. */

import { TemplateError } from "./values.ts";

export interface Node {
  readonly type: string;
}

export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** A member of a node. */
export function member(node: Node, name: string): unknown {
  return Object.getOwnPropertyDescriptor(node, name)?.value;
}

export function child(node: Node, name: string): Node {
  const found = member(node, name);
  if (isNode(found)) return found;
  throw new TemplateError(`a ${node.type} has no ${name}`);
}

/** A child that may be left out. */
export function optionalChild(node: Node, name: string): Node | null {
  const found = member(node, name);
  return isNode(found) ? found : null;
}

export function children(node: Node, name: string): readonly Node[] {
  const found = member(node, name);
  if (Array.isArray(found) && found.every(isNode)) return found;
  if (found === null || found === undefined) return [];
  throw new TemplateError(`a ${node.type} has no list ${name}`);
}

/** The pairs of an object literal. */
export function pairs(node: Node, name: string): readonly (readonly [Node, Node])[] {
  const found = member(node, name);
  if (!(found instanceof Map)) throw new TemplateError(`a ${node.type} has no pairs`);
  const list: (readonly [Node, Node])[] = [];
  for (const [key, value] of found) if (isNode(key) && isNode(value)) list.push([key, value]);
  return list;
}

export function textOf(node: Node, name: string): string {
  const found = member(node, name);
  if (typeof found === "string") return found;
  throw new TemplateError(`a ${node.type} has no text ${name}`);
}

export function numberOf(node: Node, name: string): number {
  const found = member(node, name);
  if (typeof found === "number") return found;
  throw new TemplateError(`a ${node.type} has no number ${name}`);
}

/** The name an identifier stands for. */
export function nameOf(node: Node): string {
  if (node.type === "Identifier") return textOf(node, "value");
  throw new TemplateError(`a name is wanted, not a ${node.type}`);
}

/** The operator of an expression, which the parser keeps as a token. */
export function operatorOf(node: Node): string {
  return textOf(child(node, "operator"), "value");
}
