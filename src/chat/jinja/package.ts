/** What @huggingface/jinja has but does not export: the classes of its values, its methods. */

import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import type * as ast from "../../../node_modules/@huggingface/jinja/dist/ast.d.ts";
import type * as runtime from "../../../node_modules/@huggingface/jinja/dist/runtime.d.ts";

export { Environment, parse, tokenize };
export type Token = Parameters<typeof parse>[0][number];
export type { ast };
export type Value = runtime.AnyRuntimeValue;

const samples = new Environment();
samples.set("none", null);
samples.set("true", true);

/** The class of what an expression gives. */
function classOf(expression: string): unknown {
  const { body } = parse(tokenize(`{{ ${expression} }}`));
  return new Interpreter().evaluate(body[0], samples).constructor;
}

// The two casts of this file are all that reach into the package.
const classes = {
  StringValue: classOf("''"),
  IntegerValue: classOf("1"),
  FloatValue: classOf("1.5"),
  BooleanValue: classOf("true"),
  NullValue: classOf("none"),
  UndefinedValue: classOf("undefined"),
  ArrayValue: classOf("[]"),
  TupleValue: classOf("(1, 2)"),
  ObjectValue: classOf("{}"),
  NamespaceValue: classOf("namespace()"),
  FunctionValue: classOf("namespace"),
} as unknown as typeof runtime;

export const { StringValue, IntegerValue, FloatValue, BooleanValue, NullValue } = classes;
export const { UndefinedValue, ArrayValue, TupleValue, ObjectValue } = classes;
export const { NamespaceValue, FunctionValue } = classes;

/** The interpreter, with the methods that its subclass here replaces or calls. */
export const OpenInterpreter = Interpreter as unknown as new () => {
  evaluate(node: ast.Statement | undefined, scope: Environment): Value;
  evaluateArguments(args: ast.Expression[], scope: Environment): [Value[], Map<string, Value>];
  evaluateBinaryExpression(node: ast.BinaryExpression, scope: Environment): Value;
  evaluateBlock(statements: ast.Statement[], scope: Environment): runtime.StringValue;
  evaluateFor(node: ast.For, scope: Environment): Value;
  evaluateMacro(node: ast.Macro, scope: Environment): Value;
  evaluateMemberExpression(node: ast.MemberExpression, scope: Environment): Value;
  evaluateSliceExpression(object: Value, node: ast.SliceExpression, scope: Environment): Value;
  applyFilter(operand: Value, filter: FilterNode, scope: Environment): Value;
};
export type FilterNode = ast.Identifier | ast.CallExpression;
