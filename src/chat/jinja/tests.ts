/** Jinja's tests: the package's, and those that it lacks or knows otherwise. */

import { runtimeError } from "../template-error.ts";
import { contains, equals, isNumber } from "./operators.ts";
import * as jinja from "./package.ts";

type Test = (value: jinja.Value, other: jinja.Value) => boolean;

const iterables = [jinja.ArrayValue, jinja.ObjectValue, jinja.StringValue, jinja.UndefinedValue];

const own: Readonly<Record<string, Test>> = {
  divisibleby: (value, divisor) => Number(value.value) % Number(divisor.value) === 0,
  eq: equals,
  equalto: equals,
  float: (value) => value instanceof jinja.FloatValue,
  gt: (value, other) => Number(value.value) > Number(other.value),
  in: (value, container) => contains(container, value),
  iterable: (value) => iterables.some((type) => value instanceof type),
  lt: (value, other) => Number(value.value) < Number(other.value),
  ne: (value, other) => !equals(value, other),
  number: isNumber,
};
const tests = new Map<string, Test>([...new jinja.Environment().tests, ...Object.entries(own)]);

/** Whether `value is name(other)`. */
export function passes(
  name: string,
  value: jinja.Value,
  other: jinja.Value = new jinja.UndefinedValue(),
): boolean {
  const test = tests.get(name);
  if (test === undefined) throw runtimeError(`No test named '${name}'.`);
  return test(value, other);
}
