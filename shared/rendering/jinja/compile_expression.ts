/** Expressions of a template as functions of a scope. It does not know statements. */

import { findFilter } from "./filters.ts";
import { attribute, item, sliceValue } from "./members.ts";
import {
  child,
  children,
  member,
  nameOf,
  type Node,
  numberOf,
  operatorOf,
  optionalChild,
  pairs,
  textOf,
} from "./nodes.ts";
import { areEqual, arithmetic, call, compare, contains, isTrue, iterate } from "./operators.ts";
import type { Scope } from "./scope.ts";
import { isText, plain } from "./text.ts";
import { findTest } from "./value_tests.ts";
import { type Arguments, Dict, Float, TemplateError, Tuple, Undefined, type Value } from "./values.ts";

export type Expression = (scope: Scope) => Value;

const CONSTANTS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
]);

export function compileExpression(node: Node): Expression {
  switch (node.type) {
    case "StringLiteral": {
      const text = textOf(node, "value");
      return () => text;
    }
    case "IntegerLiteral": {
      const number = numberOf(node, "value");
      return () => number;
    }
    case "FloatLiteral": {
      const float = new Float(numberOf(node, "value"));
      return () => float;
    }
    case "ArrayLiteral":
      return compileItems(node, (items) => items);
    case "TupleLiteral":
      return compileItems(node, (items) => new Tuple(items));
    case "ObjectLiteral":
      return compileDict(node);
    case "Identifier":
      return compileName(nameOf(node));
    case "MemberExpression":
      return compileMember(node);
    case "CallExpression":
      return compileCall(node);
    case "UnaryExpression":
      return compileUnary(node);
    case "BinaryExpression":
      return compileBinary(node);
    case "FilterExpression": {
      const operand = compileExpression(child(node, "operand"));
      const filter = compileFilter(child(node, "filter"));
      return (scope) => filter(operand(scope), scope);
    }
    case "TestExpression":
      return compileTest(node);
    case "Ternary": {
      const condition = compileExpression(child(node, "condition"));
      const yes = compileExpression(child(node, "trueExpr"));
      const no = compileExpression(child(node, "falseExpr"));
      return (scope) => isTrue(condition(scope)) ? yes(scope) : no(scope);
    }
    case "SelectExpression": {
      const condition = compileExpression(child(node, "test"));
      const yes = compileExpression(child(node, "lhs"));
      const otherwise = new Undefined("the inline if-expression evaluated to false and no else section was defined.");
      return (scope) => isTrue(condition(scope)) ? yes(scope) : otherwise;
    }
    default:
      throw new TemplateError(`a ${node.type} is not supported here`);
  }
}

/** A filter with its arguments, for `|` and for filter blocks. */
export function compileFilter(node: Node): (value: Value, scope: Scope) => Value {
  const isCall = node.type === "CallExpression";
  const filter = findFilter(nameOf(isCall ? child(node, "callee") : node));
  const given = compileArguments(isCall ? children(node, "args") : []);
  return (value, scope) => filter(value, given(scope));
}

export function compileArguments(nodes: readonly Node[]): (scope: Scope) => Arguments {
  const positional: Expression[] = [];
  const spread: Expression[] = [];
  const named: [string, Expression][] = [];
  const namedSpread: Expression[] = [];
  for (const node of nodes) {
    switch (node.type) {
      case "KeywordArgumentExpression":
        named.push([nameOf(child(node, "key")), compileExpression(child(node, "value"))]);
        break;
      case "SpreadExpression":
        spread.push(compileExpression(child(node, "argument")));
        break;
      case "KeywordSpreadExpression":
        namedSpread.push(compileExpression(child(node, "argument")));
        break;
      default:
        positional.push(compileExpression(node));
    }
  }
  return (scope) => {
    const values = positional.map((expression) => expression(scope));
    for (const expression of spread) values.push(...iterate(expression(scope)));
    const names = new Map<string, Value>();
    for (const [name, expression] of named) names.set(name, expression(scope));
    for (const expression of namedSpread) {
      const more = expression(scope);
      if (!(more instanceof Dict)) throw new TemplateError("argument after ** must be a mapping");
      for (const [name, value] of more.entries) names.set(name, value);
    }
    return { positional: values, named: names };
  };
}

function compileItems(node: Node, make: (items: readonly Value[]) => Value): Expression {
  const items = children(node, "value").map(compileExpression);
  return (scope) => make(items.map((expression) => expression(scope)));
}

function compileDict(node: Node): Expression {
  const entries = pairs(node, "value").map(([key, value]) =>
    [compileExpression(key), compileExpression(value)] as const
  );
  return (scope) => {
    const found = new Map<string, Value>();
    let foreignKeys = false;
    for (const [keyOf, valueOf] of entries) {
      const key = keyOf(scope);
      if (!isText(key)) throw new TemplateError("only text can be a key of a dict here");
      if (typeof key !== "string") foreignKeys = true;
      found.set(plain(key), valueOf(scope));
    }
    return new Dict(found, foreignKeys);
  };
}

function compileName(name: string): Expression {
  const constant = CONSTANTS.get(name);
  return constant === undefined ? (scope) => scope.get(name) : () => constant;
}

function compileMember(node: Node): Expression {
  const object = compileExpression(child(node, "object"));
  const property = child(node, "property");
  if (member(node, "computed") !== true) {
    if (property.type === "IntegerLiteral") {
      const index = numberOf(property, "value");
      return (scope) => item(object(scope), index);
    }
    const name = nameOf(property);
    return (scope) => attribute(object(scope), name);
  }
  if (property.type === "SliceExpression") {
    const bound = (name: string): Expression => {
      const expression = optionalChild(property, name);
      return expression === null ? () => null : compileExpression(expression);
    };
    const [start, stop, step] = [bound("start"), bound("stop"), bound("step")];
    return (scope) => sliceValue(object(scope), { start: start(scope), stop: stop(scope), step: step(scope) });
  }
  const key = compileExpression(property);
  return (scope) => item(object(scope), key(scope));
}

function compileCall(node: Node): Expression {
  const callee = compileExpression(child(node, "callee"));
  const given = compileArguments(children(node, "args"));
  return (scope) => {
    const { positional, named } = given(scope);
    return call(callee(scope), positional, named);
  };
}

function compileUnary(node: Node): Expression {
  const argument = compileExpression(child(node, "argument"));
  const operator = operatorOf(node);
  switch (operator) {
    case "not":
      return (scope) => !isTrue(argument(scope));
    case "-":
      return (scope) => arithmetic("-", 0, argument(scope));
    case "+":
      return (scope) => arithmetic("+", 0, argument(scope));
    default:
      throw new TemplateError(`the operator ${operator} is not supported`);
  }
}

function compileBinary(node: Node): Expression {
  const left = compileExpression(child(node, "left"));
  const right = compileExpression(child(node, "right"));
  const operator = operatorOf(node);
  switch (operator) {
    case "and":
      return (scope) => {
        const value = left(scope);
        return isTrue(value) ? right(scope) : value;
      };
    case "or":
      return (scope) => {
        const value = left(scope);
        return isTrue(value) ? value : right(scope);
      };
    case "==":
      return (scope) => areEqual(left(scope), right(scope));
    case "!=":
      return (scope) => !areEqual(left(scope), right(scope));
    case "in":
      return (scope) => contains(right(scope), left(scope));
    case "not in":
      return (scope) => !contains(right(scope), left(scope));
    case "<":
      return (scope) => compare(left(scope), right(scope), operator) < 0;
    case "<=":
      return (scope) => compare(left(scope), right(scope), operator) <= 0;
    case ">":
      return (scope) => compare(left(scope), right(scope), operator) > 0;
    case ">=":
      return (scope) => compare(left(scope), right(scope), operator) >= 0;
    default:
      return (scope) => arithmetic(operator, left(scope), right(scope));
  }
}

function compileTest(node: Node): Expression {
  const operand = compileExpression(child(node, "operand"));
  const test = findTest(nameOf(child(node, "test")));
  const negate = member(node, "negate") === true;
  return (scope) => test(operand(scope), null) !== negate;
}
