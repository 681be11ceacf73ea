/** What is asked of values of any kind: their type, their items, their weight. */

import { runtimeError } from "../template-error.ts";
import * as jinja from "./package.ts";
import { Text } from "./text.ts";

/** What the value is, in a word. */
export function typeName({ type }: jinja.Value): string {
  return type.replace("Value", "");
}

/** What a loop goes through: items, characters or keys. */
export function itemsOf(value: jinja.Value): jinja.Value[] {
  if (value instanceof jinja.ArrayValue) return value.value;
  if (value instanceof jinja.StringValue) return Text.from(value).characters();
  if (value instanceof jinja.ObjectValue) return Array.from(value.value.keys(), Text.user);
  if (value instanceof jinja.UndefinedValue) return [];
  throw runtimeError(`cannot loop over: ${typeName(value)}`);
}

/** What it takes to read a value once, in units of work. */
export function weightOf(value: jinja.Value): number {
  const ofText = ({ value: inner }: jinja.Value) =>
    typeof inner === "string" ? inner.length / 64 : 0;
  const isDictionary = value instanceof jinja.ObjectValue;
  const list = value instanceof jinja.ArrayValue ? value.value : [];
  const items = isDictionary ? [...value.value.values()] : list;
  return items.reduce((sum, item) => sum + 1 + ofText(item), 1 + ofText(value));
}
