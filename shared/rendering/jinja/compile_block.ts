/** Statements of a template as functions that write into an output. It does not parse. */

import { compileArguments, compileExpression, compileFilter, type Expression } from "./compile_expression.ts";
import { child, children, nameOf, type Node, optionalChild, textOf } from "./nodes.ts";
import { areEqual, call, isTrue, iterate, sequenceItems } from "./operators.ts";
import { toText } from "./representation.ts";
import { Scope } from "./scope.ts";
import { concatenate, type Text } from "./text.ts";
import {
  type Arguments,
  Attributes,
  Callable,
  Namespace,
  TemplateError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

/** How a block ended: by itself, or to leave or go on with the loop around it. */
type Ending = "break" | "continue" | undefined;
type Output = Text[];
export type Block = (scope: Scope, output: Output) => Ending;

export function compileBlock(nodes: readonly Node[]): Block {
  const statements = nodes.filter((node) => node.type !== "Comment").map(compileStatement);
  return (scope, output) => {
    for (const statement of statements) {
      const ending = statement(scope, output);
      if (ending !== undefined) return ending;
    }
    return undefined;
  };
}

function compileStatement(node: Node): Block {
  switch (node.type) {
    case "Set":
      return compileSet(node);
    case "If":
      return compileIf(node);
    case "For":
      return compileFor(node);
    case "Break":
      return () => "break";
    case "Continue":
      return () => "continue";
    case "Macro":
      return compileMacro(node);
    case "CallStatement":
      return compileCallBlock(node);
    case "FilterStatement": {
      const body = compileBlock(children(node, "body"));
      const filter = compileFilter(child(node, "filter"));
      return (scope, output) => {
        output.push(toText(filter(rendered(body, new Scope(scope)), scope)));
        return undefined;
      };
    }
    case "StringLiteral": {
      const text = textOf(node, "value");
      return (_scope, output) => {
        output.push(text);
        return undefined;
      };
    }
    default: {
      const expression = compileExpression(node);
      return (scope, output) => {
        output.push(toText(expression(scope)));
        return undefined;
      };
    }
  }
}

export function rendered(block: Block, scope: Scope): Text {
  const output: Output = [];
  block(scope, output);
  return output.length === 0 ? "" : concatenate(output);
}

function compileIf(node: Node): Block {
  const test = compileExpression(child(node, "test"));
  const body = compileBlock(children(node, "body"));
  const otherwise = compileBlock(children(node, "alternate"));
  return (scope, output) => isTrue(test(scope)) ? body(scope, output) : otherwise(scope, output);
}

function compileSet(node: Node): Block {
  const assign = compileTarget(child(node, "assignee"));
  const value = optionalChild(node, "value");
  if (value !== null) {
    const expression = compileExpression(value);
    return (scope) => {
      assign(scope, expression(scope));
      return undefined;
    };
  }
  const body = compileBlock(children(node, "body"));
  return (scope) => {
    assign(scope, rendered(body, new Scope(scope)));
    return undefined;
  };
}

/** A name, several names, or a namespace's attribute. */
function compileTarget(node: Node): (scope: Scope, value: Value) => void {
  switch (node.type) {
    case "Identifier": {
      const name = nameOf(node);
      return (scope, value) => scope.set(name, value);
    }
    case "TupleLiteral": {
      const targets = children(node, "value").map(compileTarget);
      return (scope, value) => {
        const items = sequenceItems(value) ?? iterate(value);
        if (items.length < targets.length) {
          throw new TemplateError(`not enough values to unpack (expected ${targets.length}, got ${items.length})`);
        }
        if (items.length > targets.length) {
          throw new TemplateError(`too many values to unpack (expected ${targets.length})`);
        }
        for (const [index, target] of targets.entries()) target(scope, items[index] ?? null);
      };
    }
    case "MemberExpression": {
      const object = compileExpression(child(node, "object"));
      const name = nameOf(child(node, "property"));
      return (scope, value) => {
        const namespace = object(scope);
        if (!(namespace instanceof Namespace)) {
          throw new TemplateError("cannot assign attribute on non-namespace object");
        }
        namespace.attributes.set(name, value);
      };
    }
    default:
      throw new TemplateError(`a ${node.type} can't be assigned to`);
  }
}

function compileFor(node: Node): Block {
  const assign = compileTarget(child(node, "loopvar"));
  const source = child(node, "iterable");
  // A condition after the iterable chooses among its items, and has no else.
  const isFiltered = source.type === "SelectExpression";
  const iterable = compileExpression(isFiltered ? child(source, "lhs") : source);
  const test = isFiltered ? compileExpression(child(source, "test")) : null;
  const body = compileBlock(children(node, "body"));
  const otherwise = compileBlock(children(node, "defaultBlock"));
  return (scope, output) => {
    let items = iterate(iterable(scope));
    if (test !== null) items = items.filter((item) => isTrue(test(scopeWith(scope, assign, item))));
    const changed = changeDetector();
    for (let index = 0; index < items.length; index++) {
      // What a turn of the loop sets is gone in the next.
      const turn = scopeWith(scope, assign, items[index] ?? null);
      turn.set("loop", loopState(items, index, changed));
      if (body(turn, output) === "break") break;
    }
    return items.length === 0 ? otherwise(scope, output) : undefined;
  };
}

function scopeWith(parent: Scope, assign: (scope: Scope, value: Value) => void, value: Value): Scope {
  const scope = new Scope(parent);
  assign(scope, value);
  return scope;
}

function loopState(items: readonly Value[], index: number, changed: Callable): Attributes {
  return new Attributes(
    "LoopContext",
    new Map<string, Value>([
      ["index", index + 1],
      ["index0", index],
      ["revindex", items.length - index],
      ["revindex0", items.length - index - 1],
      ["first", index === 0],
      ["last", index === items.length - 1],
      ["length", items.length],
      ["depth", 1],
      ["depth0", 0],
      ["previtem", index > 0 ? items[index - 1] ?? null : new Undefined("there is no previous item")],
      ["nextitem", index + 1 < items.length ? items[index + 1] ?? null : new Undefined("there is no next item")],
      ["cycle", new Callable("cycle", ({ positional }) => positional[index % positional.length] ?? null)],
      ["changed", changed],
    ]),
  );
}

function changeDetector(): Callable {
  let last: readonly Value[] | null = null;
  return new Callable("changed", ({ positional }) => {
    const isSame = last !== null && areEqual(last, positional);
    last = positional;
    return !isSame;
  });
}

interface Parameter {
  readonly name: string;
  readonly byDefault: Expression | null;
}

function compileParameters(nodes: readonly Node[]): readonly Parameter[] {
  return nodes.map((node) =>
    node.type === "KeywordArgumentExpression"
      ? { name: nameOf(child(node, "key")), byDefault: compileExpression(child(node, "value")) }
      : { name: nameOf(node), byDefault: null }
  );
}

/** Binds arguments as Jinja binds those of a macro: what is missing is undefined, what is too much an error. */
function bindParameters(parameters: readonly Parameter[], given: Arguments, scope: Scope): void {
  if (given.positional.length > parameters.length) {
    throw new TemplateError(`macro takes not more than ${parameters.length} argument(s)`);
  }
  for (const name of given.named.keys()) {
    if (name === "caller" || parameters.some((parameter) => parameter.name === name)) continue;
    throw new TemplateError(`macro takes no keyword argument '${name}'`);
  }
  for (const [index, { name, byDefault }] of parameters.entries()) {
    const value = index < given.positional.length ? given.positional[index] : given.named.get(name);
    const bound = value === undefined ? byDefault?.(scope) : value;
    scope.set(name, bound === undefined ? new Undefined(`parameter '${name}' was not provided`) : bound);
  }
  const caller = given.named.get("caller");
  if (caller !== undefined) scope.set("caller", caller);
}

function compileMacro(node: Node): Block {
  const name = nameOf(child(node, "name"));
  const parameters = compileParameters(children(node, "args"));
  const body = compileBlock(children(node, "body"));
  return (scope) => {
    const macro = new Callable(name, (given) => {
      const inner = new Scope(scope);
      bindParameters(parameters, given, inner);
      return rendered(body, inner);
    });
    scope.set(name, macro);
    return undefined;
  };
}

function compileCallBlock(node: Node): Block {
  const callNode = child(node, "call");
  const callee = compileExpression(child(callNode, "callee"));
  const givenOf = compileArguments(children(callNode, "args"));
  const parameters = compileParameters(children(node, "callerArgs"));
  const body = compileBlock(children(node, "body"));
  return (scope, output) => {
    const caller = new Callable("caller", (given) => {
      const inner = new Scope(scope);
      bindParameters(parameters, given, inner);
      return rendered(body, inner);
    });
    const { positional, named } = givenOf(scope);
    const macro = callee(scope);
    if (!(macro instanceof Callable)) throw new TemplateError(`'${typeName(macro)}' object is not callable`);
    output.push(toText(call(macro, positional, new Map([...named, ["caller", caller]]))));
    return undefined;
  };
}
