/**
 * What a template is given: JSON as a client sent it, and how it becomes the template's own values.
 */

import { Text } from "./jinja/text.ts";
import * as jinja from "./jinja/package.ts";

/** Messages, tools, `add_generation_prompt` and any other variable of the template. */
export interface TemplateInput {
  readonly messages?: readonly unknown[];
  readonly [variable: string]: unknown;
}

/** A number that was written as a float: Python prints 1.0 where JavaScript knows only 1. */
export class Float {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/**
 * Parses JSON without losing what Python sees in it: 1.0 stays a float (a `Float`), integers beyond
 * 2^53 stay exact (a bigint). Throws a SyntaxError like `JSON.parse`.
 */
export function parseTemplateInput(json: string): unknown {
  return JSON.parse(json, (_key, value: unknown, context?: { source?: string }) => {
    if (typeof value !== "number" || context?.source === undefined) return value;
    if (!Number.isInteger(value)) return value;
    if (/[.e]/i.test(context.source)) return new Float(value);
    return Number.isSafeInteger(value) ? value : BigInt(context.source);
  });
}

/**
 * The variables of an input; every string in them counts as the user's, except the roles of
 * messages.
 */
export function userVariables(input: TemplateInput): Map<string, jinja.Value> {
  const variables = new Map<string, jinja.Value>();
  for (const [name, value] of Object.entries(input)) {
    // An absent variable is undefined in the template, which is not the same as none.
    if (value !== undefined) variables.set(name, toValue(value, Text.user));
  }
  const messages = variables.get("messages");
  if (messages instanceof jinja.ArrayValue)
    for (const message of messages.value) trustRole(message);
  return variables;
}

/**
 * The variables that come with the model, such as `bos_token`: as good as the template's own text.
 */
export function modelVariables(
  variables: Readonly<Record<string, unknown>>,
): Map<string, jinja.Value> {
  return new Map(
    Object.entries(variables).map(([name, value]) => [name, toValue(value, Text.template)]),
  );
}

/**
 * Templates build markers such as "<|user|>" from the role. A role that is a plain word cannot hold
 * a marker of its own, so it may be part of one.
 */
function trustRole(message: jinja.Value): void {
  if (!(message instanceof jinja.ObjectValue)) return;
  const role = message.value.get("role")?.value;
  if (typeof role !== "string" || !/^[A-Za-z][\w-]*$/.test(role)) return;
  message.value.set("role", Text.template(role));
}

function toValue(input: unknown, toText: (value: string) => Text): jinja.Value {
  if (typeof input === "string") return toText(input);
  if (typeof input === "boolean") return new jinja.BooleanValue(input);
  // The package declares numbers, and can print a bigint in the place of one.
  if (typeof input === "bigint") return new jinja.IntegerValue(input as unknown as number);
  if (typeof input === "number") {
    return Number.isInteger(input) ? new jinja.IntegerValue(input) : new jinja.FloatValue(input);
  }
  if (input instanceof Float) return new jinja.FloatValue(input.value);
  if (Array.isArray(input)) return new jinja.ArrayValue(input.map((item) => toValue(item, toText)));
  if (typeof input !== "object" || input === null) return new jinja.NullValue();
  const entries = Object.entries(input).filter(([, value]) => value !== undefined);
  return new jinja.ObjectValue(
    new Map(entries.map(([key, value]) => [key, toValue(value, toText)])),
  );
}
