/**
 * JSON schemas that answers can be held to. What the grammar engine cannot enforce is refused by
 * name; nothing is passed over. Bounds keep hostile schemas small.
 */
import { Refusal } from "./problem.ts";

type Json = Readonly<Record<string, unknown>>;

const limits = {
  depth: 24,
  nodes: 2000,
  enumValues: 1000,
  stringLength: 4096,
  items: 512,
  patternLength: 256,
} as const;

/** Say nothing about which values are valid. */
const annotations = new Set([
  "title",
  "description",
  "default",
  "examples",
  "example",
  "deprecated",
  "readOnly",
  "writeOnly",
  "$schema",
  "$id",
  "$comment",
  "$defs",
  "definitions",
  "discriminator",
]);

/** What can be enforced, by the type that it is about. */
const keywords: Readonly<Record<string, readonly string[]>> = {
  object: ["properties", "required", "additionalProperties"],
  array: ["items", "prefixItems", "minItems", "maxItems"],
  string: ["minLength", "maxLength", "pattern", "format"],
  integer: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  boolean: [],
  null: [],
};

const formats = new Set(["date", "time", "date-time", "email", "ipv4", "ipv6", "uuid", "hostname"]);

/** The schema as the grammar engine takes it. Throws a `Refusal` that names what it cannot do. */
export function prepareSchema(schema: unknown): unknown {
  return new SchemaReader(schema).read(schema, "schema", 0);
}

class SchemaReader {
  readonly #root: unknown;
  #nodeCount = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  read(schema: unknown, place: string, depth: number): unknown {
    if (++this.#nodeCount > limits.nodes) throw refusal(place, "the schema is too large");
    if (depth > limits.depth) throw refusal(place, `it is nested more than ${limits.depth} deep`);
    if (schema === true) return true;
    if (!isObject(schema)) throw refusal(place, "it must be an object or true");
    const definitions = this.#readDefinitions(schema, place, depth);
    const rule = this.#readRule(schema, place, depth);
    return { ...rule, ...definitions };
  }

  #readDefinitions(schema: Json, place: string, depth: number): Json {
    const found = ["$defs", "definitions"].filter((key) => key in schema);
    return Object.fromEntries(
      found.map((key) => [key, this.#readAll(schema[key], `${place}.${key}`, depth)]),
    );
  }

  #readAll(schemas: unknown, place: string, depth: number): Json {
    if (!isObject(schemas)) throw refusal(place, "it must be an object");
    return Object.fromEntries(
      Object.entries(schemas).map(([key, value]) => [
        key,
        this.read(value, `${place}.${key}`, depth + 1),
      ]),
    );
  }

  #readRule(schema: Json, place: string, depth: number): Json {
    const rules = Object.keys(schema).filter((key) => !annotations.has(key));
    for (const key of ["$ref", "enum", "const", "anyOf", "oneOf", "allOf"] as const) {
      if (!(key in schema)) continue;
      const beside = rules.find((other) => other !== key && !isTypeOf(key, other));
      if (beside !== undefined) throw refusal(place, `${key} beside ${beside} cannot be enforced`);
      return this.#readChoice(key, schema, place, depth);
    }
    const { type } = schema;
    if (Array.isArray(type)) return this.#readTypes(type, schema, place, depth);
    if (type === undefined && rules.length === 0) return {};
    const known = typeof type === "string" ? keywords[type] : undefined;
    if (known === undefined) throw refusal(place, `type ${JSON.stringify(type)} is not supported`);
    const foreign = rules.find((key) => key !== "type" && !known.includes(key));
    if (foreign !== undefined) throw refusal(place, `${foreign} cannot be enforced`);
    return this.#readTyped(schema, place, depth);
  }

  #readChoice(
    key: "$ref" | "enum" | "const" | "anyOf" | "oneOf" | "allOf",
    schema: Json,
    place: string,
    depth: number,
  ): Json {
    const value = schema[key];
    if (key === "$ref") return this.#readReference(value, place);
    if (key === "const") return { enum: [value] };
    if (!Array.isArray(value) || value.length === 0) throw refusal(place, `${key} is empty`);
    if (key === "enum") {
      if (value.length > limits.enumValues) throw refusal(place, "enum has too many values");
      return { enum: value };
    }
    if (key === "allOf" && value.length > 1) throw refusal(place, "allOf cannot be enforced");
    const choices = value.map((choice, i) => this.read(choice, `${place}.${key}[${i}]`, depth + 1));
    if (key === "oneOf" && !areDisjoint(choices)) {
      throw refusal(place, "oneOf of alternatives that may overlap cannot be enforced; use anyOf");
    }
    return { anyOf: choices };
  }

  #readTypes(types: readonly unknown[], schema: Json, place: string, depth: number): Json {
    const choices = types.map((type) => {
      const own = typeof type === "string" ? keywords[type] : undefined;
      if (own === undefined) throw refusal(place, `type ${JSON.stringify(type)} is not supported`);
      const kept = Object.entries(schema).filter(([key]) => own.includes(key));
      return this.read({ ...Object.fromEntries(kept), type }, place, depth + 1);
    });
    const all = types.flatMap((type) => keywords[String(type)] ?? []);
    const foreign = Object.keys(schema).find(
      (key) => key !== "type" && !annotations.has(key) && !all.includes(key),
    );
    if (foreign !== undefined) throw refusal(place, `${foreign} cannot be enforced`);
    return { anyOf: choices };
  }

  /** A reference within the schema, which must lead to something other than references. */
  #readReference(reference: unknown, place: string): Json {
    const seen = new Set<unknown>();
    for (let next = reference; next !== undefined;) {
      if (typeof next !== "string" || !/^#(\/|$)/.test(next)) {
        throw refusal(place, `$ref ${JSON.stringify(next)} leads out of the schema`);
      }
      if (seen.has(next)) throw refusal(place, `$ref ${next} leads round in a circle`);
      seen.add(next);
      const target = this.#resolve(next);
      if (target === undefined) throw refusal(place, `$ref ${next} leads nowhere`);
      next = isObject(target) ? (target["$ref"] as string | undefined) : undefined;
    }
    return { $ref: reference };
  }

  #resolve(reference: string): unknown {
    let target = this.#root;
    for (const part of reference.split("/").slice(1)) {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
      if (!isObject(target) || !Object.hasOwn(target, key)) return undefined;
      target = target[key];
    }
    return target;
  }

  #readTyped(schema: Json, place: string, depth: number): Json {
    const kept = Object.fromEntries(
      Object.entries(schema).filter(([key]) => !annotations.has(key)),
    );
    switch (schema["type"]) {
      case "object":
        return { ...kept, ...this.#readObject(schema, place, depth) };
      case "array":
        return { ...kept, ...this.#readArray(schema, place, depth) };
      case "string":
        return { ...kept, ...readString(schema, place) };
      default:
        return kept;
    }
  }

  #readObject(schema: Json, place: string, depth: number): Json {
    const { properties = {}, required = [], additionalProperties } = schema;
    const read = this.#readAll(properties, `${place}.properties`, depth);
    if (!Array.isArray(required)) throw refusal(place, "required must be a list");
    const missing = required.find((name) => !Object.hasOwn(read, String(name)));
    if (missing !== undefined) throw refusal(place, `required ${missing} is not in properties`);
    if (additionalProperties === undefined || typeof additionalProperties === "boolean") {
      return { properties: read };
    }
    const rest = this.read(additionalProperties, `${place}.additionalProperties`, depth + 1);
    return { properties: read, additionalProperties: rest };
  }

  #readArray(schema: Json, place: string, depth: number): Json {
    requireBounds(schema, ["minItems", "maxItems"], limits.items, place);
    const { items, prefixItems } = schema;
    const read: Record<string, unknown> = {};
    if (items !== undefined) {
      read["items"] = items === false ? false : this.read(items, `${place}.items`, depth + 1);
    }
    if (Array.isArray(prefixItems)) {
      read["prefixItems"] = prefixItems.map((item, i) =>
        this.read(item, `${place}.prefixItems[${i}]`, depth + 1),
      );
    } else if (prefixItems !== undefined) throw refusal(place, "prefixItems must be a list");
    return read;
  }
}

function readString(schema: Json, place: string): Json {
  const rules = ["pattern", "format", "minLength"].filter((key) => key in schema);
  if ("maxLength" in schema && !rules.includes("minLength")) rules.push("maxLength");
  if (rules.length > 1) throw refusal(place, `${rules[0]} beside ${rules[1]} cannot be enforced`);
  requireBounds(schema, ["minLength", "maxLength"], limits.stringLength, place);
  const { format, pattern } = schema;
  if (format !== undefined && !formats.has(String(format))) {
    throw refusal(place, `format ${JSON.stringify(format)} cannot be enforced`);
  }
  return pattern === undefined ? {} : { pattern: readPattern(pattern, place) };
}

/**
 * A regular expression that matches nothing that JSON would have to escape in a string: the grammar
 * engine puts it between quotes as it is.
 */
function readPattern(pattern: unknown, place: string): string {
  const refused = refusal(place, `pattern ${JSON.stringify(pattern)} cannot be enforced`);
  if (typeof pattern !== "string" || pattern.length > limits.patternLength) throw refused;
  try {
    new RegExp(pattern, "u");
  } catch {
    throw refused;
  }
  const body = pattern.replace(/^\^/, "").replace(/(?<!\\)\$$/, "");
  // Classes first, then what stands outside of them.
  const outside = body.replace(/\[(?:[^\]\\]|\\.)*\]/g, "a");
  const isStrange = /\(\?(?!:)|\\(?![dws.*+?()[\]{}|/^$-])|["^$\u0000-\u001f]|\{\d{3,}/.test(
    outside.replace(/\\[.*+?()[\]{}|/^$-]/g, "a"),
  );
  const classes = body.match(/\[(?:[^\]\\]|\\.)*\]/g) ?? [];
  const isStrangeClass = classes.some((text) => /["]|\\(?![dw.*+?()[\]{}|/^$-])/.test(text));
  if (isStrange || isStrangeClass) throw refused;
  return `^${body
    .replace(/\[\^((?:[^\]\\]|\\.)*)\]/g, (_all, inner: string) => `[^${inner}"\\\\\\x00-\\x1f]`)
    .replace(/\\s/g, " ")
    .replace(
      /(\[(?:[^\]\\]|\\.)*\]|\\.)|\./g,
      (_all, kept?: string) => kept ?? '[^"\\\\\\x00-\\x1f]',
    )}$`;
}

function requireBounds(schema: Json, names: readonly string[], max: number, place: string): void {
  for (const name of names) {
    const value = schema[name];
    if (value === undefined) continue;
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > max) {
      throw refusal(place, `${name} must be a whole number from 0 to ${max}`);
    }
  }
}

/** Whether a value can match one of the alternatives at most, judged by types and constants. */
function areDisjoint(choices: readonly unknown[]): boolean {
  return choices.every((one, i) => choices.slice(i + 1).every((other) => isApart(one, other)));
}

function isApart(one: unknown, other: unknown): boolean {
  if (!isObject(one) || !isObject(other)) return false;
  const [a, b] = [one["type"], other["type"]];
  if (typeof a === "string" && typeof b === "string" && a !== b) {
    return !["number", "integer"].includes(a) || !["number", "integer"].includes(b);
  }
  const shared = requiredOf(one).filter((name) => requiredOf(other).includes(name));
  return shared.some((name) => {
    const [left, right] = [constantsOf(one, name), constantsOf(other, name)];
    return left.length > 0 && right.length > 0 && !left.some((value) => right.includes(value));
  });
}

function requiredOf(schema: Json): string[] {
  const { required } = schema;
  return Array.isArray(required) ? required.map(String) : [];
}

/** The values of a property, as JSON, if there are only some. */
function constantsOf({ properties }: Json, name: string): string[] {
  const property = isObject(properties) ? properties[name] : undefined;
  const values = isObject(property) ? property["enum"] : undefined;
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : [];
}

/** `type` beside a list of values says nothing that the list does not. */
function isTypeOf(key: string, other: string): boolean {
  return other === "type" && (key === "enum" || key === "const");
}

function refusal(place: string, reason: string): Refusal {
  return new Refusal({
    kind: "usage",
    message: `${place}: ${reason}`,
    param: "response_format",
    code: "unsupported_schema",
  });
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
