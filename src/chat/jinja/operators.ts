/** The operators that mean something else to Python than to the package. */

import { limitError, runtimeError } from "../template-error.ts";
import { checkLength, reserve, spend } from "./budget.ts";
import * as jinja from "./package.ts";
import { print } from "./print.ts";
import { Text } from "./text.ts";
import { itemsOf, typeName } from "./values.ts";

type Operator = (left: jinja.Value, right: jinja.Value) => jinja.Value;

export const operators: ReadonlyMap<string, Operator> = new Map(
  Object.entries<Operator>({
    "~": (left, right) => Text.join([print(left), print(right)]),
    "+": add,
    "*": multiply,
    "/": (left, right) => calculate("/", left, right),
    "//": (left, right) => calculate("//", left, right),
    "%": (left, right) => calculate("%", left, right),
    "==": (left, right) => new jinja.BooleanValue(equals(left, right)),
    "!=": (left, right) => new jinja.BooleanValue(!equals(left, right)),
    in: (left, right) => new jinja.BooleanValue(contains(right, left)),
    "not in": (left, right) => new jinja.BooleanValue(!contains(right, left)),
  }),
);

const numberClasses = [jinja.IntegerValue, jinja.FloatValue, jinja.BooleanValue] as const;

export function isNumber(value: jinja.Value): boolean {
  return numberClasses.some((numberClass) => value instanceof numberClass);
}

function add(left: jinja.Value, right: jinja.Value): jinja.Value {
  if (left instanceof jinja.StringValue && right instanceof jinja.StringValue) {
    return Text.join([Text.from(left), Text.from(right)]);
  }
  if (left instanceof jinja.ArrayValue && right instanceof jinja.ArrayValue) {
    reserve(0, left.value.length + right.value.length);
    return new jinja.ArrayValue(left.value.concat(right.value));
  }
  return calculate("+", left, right);
}

function multiply(left: jinja.Value, right: jinja.Value): jinja.Value {
  if (!(left instanceof jinja.StringValue && right instanceof jinja.IntegerValue)) {
    return calculate("*", left, right);
  }
  const { value, mask } = Text.from(left);
  const times = Math.max(0, right.value);
  checkLength(value.length * times);
  return new Text(value.repeat(times), mask.repeat(times));
}

const calculations = {
  "+": (a: number, b: number) => a + b,
  "*": (a: number, b: number) => a * b,
  "/": (a: number, b: number) => a / b,
  "//": (a: number, b: number) => Math.floor(a / b),
  // The remainder has the sign of the divisor.
  "%": (a: number, b: number) => a - Math.floor(a / b) * b,
};

function calculate(
  operator: keyof typeof calculations,
  left: jinja.Value,
  right: jinja.Value,
): jinja.Value {
  if (!isNumber(left) || !isNumber(right)) {
    throw runtimeError(`cannot ${operator} ${typeName(left)} and ${typeName(right)}`);
  }
  const result = calculations[operator](Number(left.value), Number(right.value));
  if (!Number.isFinite(result)) throw runtimeError(`the result of ${operator} is not finite`);
  const isFloat =
    operator === "/" || [left, right].some((side) => side instanceof jinja.FloatValue);
  return isFloat ? new jinja.FloatValue(result) : new jinja.IntegerValue(result);
}

export function equals(left: jinja.Value, right: jinja.Value): boolean {
  spend(1);
  // Integers, also big ones, floats and booleans are equal if their numbers are.
  if (isNumber(left) && isNumber(right)) return left.value == right.value;
  if (left.type !== right.type) return false;
  const other = new jinja.UndefinedValue();
  if (left instanceof jinja.ArrayValue && right instanceof jinja.ArrayValue) {
    const isAlike = (item: jinja.Value, i: number) => equals(item, right.value[i] ?? other);
    return left.value.length === right.value.length && left.value.every(isAlike);
  }
  if (left instanceof jinja.ObjectValue && right instanceof jinja.ObjectValue) {
    const entries = [...left.value];
    const isAlike = ([key, item]: [string, jinja.Value]) =>
      equals(item, right.value.get(key) ?? other);
    return entries.length === right.value.size && entries.every(isAlike);
  }
  if (typeof left.value === "string") spend(left.value.length / 64);
  return left.value === right.value;
}

export function contains(container: jinja.Value, item: jinja.Value): boolean {
  if (container instanceof jinja.StringValue) {
    const [whole, part] = [container.value, Text.from(item).value];
    spend((whole.length + part.length) / 64);
    // The engine's search is quadratic at worst, which only long parts make noticeable.
    const isSlow = part.length > 1024 && whole.length * part.length > 2 ** 35;
    if (isSlow) throw limitError("the template searches too much text");
    return whole.includes(part);
  }
  if (!(container instanceof jinja.ObjectValue)) {
    return itemsOf(container).some((other) => equals(item, other));
  }
  return item instanceof jinja.StringValue && container.value.has(item.value);
}
