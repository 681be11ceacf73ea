/** The package's interpreter with Python's values, scopes and loops. */

import { runtimeError, TemplateError } from "../template-error.ts";
import { Arguments } from "./arguments.ts";
import { nested, spend } from "./budget.ts";
import { filterOf } from "./filters.ts";
import { loopScope, setLoop } from "./loop.ts";
import { attributeOf, itemOf } from "./member.ts";
import { operators } from "./operators.ts";
import * as jinja from "./package.ts";
import type { ast, Environment, FilterNode, Value } from "./package.ts";
import { print } from "./print.ts";
import { Text } from "./text.ts";
import { itemsOf, weightOf } from "./values.ts";

/** `break` or `continue`, on its way to the loop with what the turn has printed so far. */
class LoopExit {
  readonly type: string;
  text = Text.template("");

  constructor(type: string) {
    this.type = type;
  }
}

/** Nodes that print nothing, whatever their value. */
const silent: ReadonlySet<string> = new Set(["Comment", "Macro", "Set"]);

export class TemplateInterpreter extends jinja.OpenInterpreter {
  /** The text of a program. Throws a `TemplateError`. */
  render(statements: ast.Statement[], scope: Environment): Text {
    try {
      return this.evaluateBlock(statements, scope);
    } catch (error) {
      if (error instanceof LoopExit) throw runtimeError(`'${error.type}' outside loop`);
      const isOurs = error instanceof TemplateError || error instanceof RangeError;
      // The package complains with plain errors, and trips over values that it does not expect.
      throw isOurs ? error : runtimeError((error as Error).message);
    }
  }

  override evaluate(node: ast.Statement | undefined, scope: Environment): Value {
    spend(1);
    switch (node?.type) {
      case "StringLiteral":
        return Text.template((node as ast.StringLiteral).value);
      case "Break":
      case "Continue":
        throw new LoopExit(node.type);
      default:
        return super.evaluate(node, scope);
    }
  }

  override evaluateBlock(statements: ast.Statement[], scope: Environment): Text {
    const parts: Text[] = [];
    try {
      for (const statement of statements) {
        const value = this.evaluate(statement, scope);
        if (!silent.has(statement.type)) parts.push(print(value));
      }
    } catch (error) {
      if (error instanceof LoopExit) error.text = Text.join([...parts, error.text]);
      throw error;
    }
    return Text.join(parts);
  }

  override evaluateBinaryExpression(node: ast.BinaryExpression, scope: Environment): Value {
    const name = node.operator.value;
    const operator = operators.get(name);
    if (operator === undefined) return super.evaluateBinaryExpression(node, scope);
    const operands = operandsOf(node).map((operand) => this.evaluate(operand, scope));
    // All strings at once, or the first would be copied for each of the others.
    const isText =
      name === "+" && operands.every((operand) => operand instanceof jinja.StringValue);
    return isText ? Text.join(operands.map((text) => Text.from(text))) : operands.reduce(operator);
  }

  override evaluateMemberExpression(node: ast.MemberExpression, scope: Environment): Value {
    const object = this.evaluate(node.object, scope);
    if (node.property.type === "SliceExpression") {
      return this.evaluateSliceExpression(object, node.property as ast.SliceExpression, scope);
    }
    const isName = !node.computed && node.property.type === "Identifier";
    const { value: name } = node.property as ast.Identifier;
    const key = isName ? Text.template(name) : this.evaluate(node.property, scope);
    if (object instanceof jinja.UndefinedValue) {
      throw runtimeError(`cannot look up '${print(key).value}' in something undefined`);
    }
    return isName ? attributeOf(object, name) : itemOf(object, key);
  }

  override evaluateSliceExpression(value: Value, node: ast.SliceExpression, scope: Environment) {
    spend(weightOf(value));
    const isText = value instanceof jinja.StringValue;
    const list = isText ? new jinja.ArrayValue(itemsOf(value)) : value;
    const slice = super.evaluateSliceExpression(list, node, scope);
    return isText ? Text.join(itemsOf(slice).map((item) => Text.from(item))) : slice;
  }

  override applyFilter(operand: Value, node: FilterNode, scope: Environment): Value {
    spend(weightOf(operand));
    const [callee, args] = "callee" in node ? [node.callee, node.args] : [node, []];
    const filter = filterOf((callee as ast.Identifier).value);
    if (filter !== undefined) {
      return filter(operand, new Arguments(...this.evaluateArguments(args, scope)));
    }
    return super.applyFilter(operand, node, scope);
  }

  /** A macro sees the scope that it was defined in, and the `caller` of the one that calls it. */
  override evaluateMacro(node: ast.Macro, scope: Environment): Value {
    const result = super.evaluateMacro(node, scope);
    const macro = scope.variables.get(node.name.value);
    if (!(macro instanceof jinja.FunctionValue)) return result;
    const closure = new jinja.FunctionValue((args, callerScope) => {
      const inner = new jinja.Environment(scope);
      const caller = callerScope.variables.get("caller");
      if (caller !== undefined) inner.setVariable("caller", caller);
      return nested(() => macro.value(args, inner));
    });
    scope.setVariable(node.name.value, closure);
    return result;
  }

  /** Each turn has a scope of its own, and keeps what it printed before it was cut short. */
  override evaluateFor(node: ast.For, scope: Environment): Value {
    const { lhs = node.iterable, test } = node.iterable as Partial<ast.SelectExpression>;
    const items = itemsOf(this.evaluate(lhs, scope)).filter(
      (item) =>
        test === undefined || this.evaluate(test, loopScope(node, item, scope)).__bool__().value,
    );
    const turns: Text[] = [];
    for (const [i, item] of items.entries()) {
      const inner = loopScope(node, item, scope);
      setLoop(items, i, inner);
      try {
        turns.push(this.evaluateBlock(node.body, inner));
      } catch (error) {
        if (!(error instanceof LoopExit)) throw error;
        turns.push(error.text);
        if (error.type === "Break") break;
      }
    }
    if (items.length === 0) turns.push(this.evaluateBlock(node.defaultBlock, scope));
    return Text.join(turns);
  }
}

/** The operands of a chain with one operator, such as `a + b + c`. */
function operandsOf(node: ast.BinaryExpression): ast.Expression[] {
  const operands = [node.right];
  let { left } = node;
  while (left.type === "BinaryExpression") {
    const inner = left as ast.BinaryExpression;
    if (inner.operator.value !== node.operator.value) break;
    operands.push(inner.right);
    ({ left } = inner);
  }
  return [left, ...operands.reverse()];
}
