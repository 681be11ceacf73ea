/** The arguments of a call, by position or by name, with their types checked. */

import { runtimeError } from "../template-error.ts";
import * as jinja from "./package.ts";
import { Text } from "./text.ts";

export class Arguments {
  readonly positional: readonly jinja.Value[];
  readonly keywords: ReadonlyMap<string, jinja.Value>;

  /** The package passes the keyword arguments as the last value. */
  constructor(values: readonly jinja.Value[], keywords?: ReadonlyMap<string, jinja.Value>) {
    const last = values.at(-1);
    const hasKeywords = last?.type === "KeywordArgumentsValue" && last instanceof jinja.ObjectValue;
    this.positional = hasKeywords ? values.slice(0, -1) : values;
    this.keywords = keywords ?? (hasKeywords ? last.value : new Map());
  }

  get(index: number, name = ""): jinja.Value | undefined {
    return this.positional[index] ?? this.keywords.get(name);
  }

  text(index: number, name?: string): Text {
    return Text.from(this.get(index, name));
  }

  /** A string, if one is given. */
  optionalText(index: number, name?: string): Text | undefined {
    const value = this.get(index, name);
    return value instanceof jinja.StringValue ? Text.from(value) : undefined;
  }

  integer(index: number, name: string, fallback: number): number {
    const value = this.get(index, name);
    if (value === undefined) return fallback;
    if (value instanceof jinja.IntegerValue) return value.value;
    throw runtimeError(`${name} must be an integer`);
  }

  flag(index: number, name: string): boolean {
    return this.get(index, name)?.__bool__().value ?? false;
  }
}
