/**
 * JSON schemas as grammars of the answers that are valid under them. What cannot be enforced is
 * refused by name; nothing is passed over. Bounds keep hostile schemas small.
 *
 * Where a schema leaves a choice that is no one's concern, the grammar takes one: properties come
 * in their order, and only those that are named, with one space behind colons and commas.
 */
import { areDisjoint } from "./disjoint.ts";
import { decimalNumbers, wholeNumbers } from "./number-range.ts";
import { patternGrammar } from "./pattern.ts";
import { formatPatterns } from "./string-format.ts";
import { UnsupportedSchema } from "./unsupported-schema.ts";

type Json = Readonly<Record<string, unknown>>;

const limits = {
  depth: 24,
  nodes: 2000,
  enumValues: 1000,
  stringLength: 2000,
  items: 200,
  patternLength: 256,
} as const;

/** Say nothing about which values are valid. */
const annotations = new Set([
  ...["title", "description", "default", "examples", "example", "deprecated", "readOnly"],
  ...["writeOnly", "$schema", "$id", "$comment", "$defs", "definitions", "discriminator"],
]);

const ranges = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/** What can be enforced, by the type that it is about. */
const keywords: Readonly<Record<string, readonly string[]>> = {
  object: ["properties", "required", "additionalProperties"],
  array: ["items", "prefixItems", "minItems", "maxItems"],
  string: ["minLength", "maxLength", "pattern", "format"],
  integer: ranges,
  number: ranges,
  boolean: [],
  null: [],
};

const choices = ["$ref", "enum", "const", "anyOf", "oneOf", "allOf"] as const;

/** Rules that every grammar has: a character of a string, and any value. */
export const commonRules: readonly string[] = [
  String.raw`char ::= [^"\\\x00-\x1f] | "\\" escape`,
  String.raw`escape ::= ["\\/bfnrt] | "u" ([0-9A-Ca-cEFef] hex hex hex | [Dd] [0-7] hex hex)`,
  "hex ::= [0-9A-Fa-f]",
  String.raw`string ::= "\"" char* "\""`,
  'integer ::= "-"? ("0" | [1-9] [0-9]{0,14})',
  'number ::= integer ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?',
  'value ::= object | array | string | number | "true" | "false" | "null"',
  'object ::= "{" (member (", " member)*)? "}"',
  'member ::= string ": " value',
  'array ::= "[" (value (", " value)*)? "]"',
];

/** The grammar whose root is what the schema describes. Throws `UnsupportedSchema`. */
export function schemaGrammar(schema: unknown): string {
  const { root, rules } = schemaRules(schema);
  return [`root ::= ${root}`, ...rules, ...commonRules].join("\n");
}

/** The rules of a schema, for a grammar of more than that; all of their names have the prefix. */
export function schemaRules(schema: unknown, prefix = ""): { root: string; rules: string[] } {
  return new GrammarWriter(schema, prefix).write();
}

/** The grammar of any object. */
export const objectGrammar: string = ["root ::= object", ...commonRules].join("\n");

class GrammarWriter {
  readonly #root: unknown;
  readonly #prefix: string;
  readonly #rules: string[] = [];
  /** The rules that references lead to. */
  readonly #references = new Map<string, string>();
  #nodeCount = 0;

  constructor(root: unknown, prefix: string) {
    this.#root = root;
    this.#prefix = prefix;
  }

  write(): { root: string; rules: string[] } {
    const root = this.#read(this.#root, "schema", 0);
    return { root, rules: this.#rules };
  }

  /** The name of a new rule. */
  #rule(body: string): string {
    const name = `${this.#prefix}r${this.#rules.length}`;
    this.#rules.push(`${name} ::= ${body}`);
    return name;
  }

  /** The name of a rule for a schema. */
  #read(schema: unknown, place: string, depth: number): string {
    if (++this.#nodeCount > limits.nodes) {
      throw new UnsupportedSchema(place, "the schema is too large");
    }
    if (depth > limits.depth) {
      throw new UnsupportedSchema(place, `it is nested more than ${limits.depth} deep`);
    }
    if (schema === true) return "value";
    if (!isObject(schema)) throw new UnsupportedSchema(place, "it must be an object or true");
    const rules = Object.keys(schema).filter((key) => !annotations.has(key));
    const choice = choices.find((key) => key in schema);
    if (choice !== undefined) {
      // A type beside a list of values says nothing that the list does not.
      const isList = choice === "enum" || choice === "const";
      const beside = rules.find((key) => key !== choice && !(isList && key === "type"));
      if (beside === undefined) return this.#readChoice(choice, schema, place, depth);
      throw new UnsupportedSchema(place, `${choice} beside ${beside} cannot be enforced`);
    }
    return this.#readTyped(schema, rules, place, depth);
  }

  #readChoice(key: (typeof choices)[number], schema: Json, place: string, depth: number): string {
    const value = schema[key];
    if (key === "$ref") return this.#readReference(value, place);
    if (key === "const") return this.#rule(literal(value));
    if (!Array.isArray(value) || value.length === 0) {
      throw new UnsupportedSchema(place, `${key} is empty`);
    }
    if (key === "enum") {
      if (value.length <= limits.enumValues) return this.#rule(value.map(literal).join(" | "));
      throw new UnsupportedSchema(place, `enum has more than ${limits.enumValues} values`);
    }
    if (key === "allOf" && value.length > 1) {
      throw new UnsupportedSchema(place, "allOf cannot be enforced");
    }
    if (key === "oneOf" && !areDisjoint(value)) {
      const reason = "oneOf of alternatives that may overlap cannot be enforced; use anyOf";
      throw new UnsupportedSchema(place, reason);
    }
    const names = value.map((one, i) => this.#read(one, `${place}.${key}[${i}]`, depth + 1));
    return this.#rule(names.join(" | "));
  }

  /** A reference within the schema, which must lead to something other than references. */
  #readReference(reference: unknown, place: string): string {
    const seen = new Set<unknown>();
    let target: unknown;
    for (let next = reference; next !== undefined;) {
      if (typeof next !== "string" || !/^#(\/|$)/.test(next)) {
        throw new UnsupportedSchema(place, `$ref ${JSON.stringify(next)} leads out of the schema`);
      }
      if (seen.has(next)) throw new UnsupportedSchema(place, `$ref ${next} leads in a circle`);
      seen.add(next);
      target = this.#resolve(next);
      if (target === undefined) throw new UnsupportedSchema(place, `$ref ${next} leads nowhere`);
      next = isObject(target) ? target["$ref"] : undefined;
    }
    const known = this.#references.get(String(reference));
    if (known !== undefined) return known;
    // Before it is read: it may refer to itself.
    const name = `${this.#prefix}ref${this.#references.size}`;
    this.#references.set(String(reference), name);
    this.#rules.push(`${name} ::= ${this.#read(target, String(reference), 0)}`);
    return name;
  }

  #resolve(reference: string): unknown {
    let target: unknown = this.#root;
    for (const part of reference.split("/").slice(1)) {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
      const isThere = typeof target === "object" && target !== null && Object.hasOwn(target, key);
      if (!isThere) return undefined;
      target = (target as Json)[key];
    }
    return target;
  }

  #readTyped(schema: Json, rules: readonly string[], place: string, depth: number): string {
    const { type } = schema;
    if (type === undefined && rules.length === 0) return "value";
    const types: readonly unknown[] = Array.isArray(type) ? type : [type];
    const known = types.map((one) => {
      const own = typeof one === "string" ? keywords[one] : undefined;
      if (own !== undefined) return own;
      throw new UnsupportedSchema(place, `type ${JSON.stringify(one)} is not supported`);
    });
    const foreign = rules.find((key) => key !== "type" && !known.flat().includes(key));
    if (foreign !== undefined) throw new UnsupportedSchema(place, `${foreign} cannot be enforced`);
    const names = types.map((one) => this.#readType(String(one), schema, place, depth));
    const [name = "value"] = names;
    return names.length === 1 ? name : this.#rule(names.join(" | "));
  }

  #readType(type: string, schema: Json, place: string, depth: number): string {
    switch (type) {
      case "object":
        return this.#readObject(schema, place, depth);
      case "array":
        return this.#readArray(schema, place, depth);
      case "string":
        return this.#rule(stringBody(schema, place));
      case "boolean":
        return this.#rule('"true" | "false"');
      case "null":
        return this.#rule('"null"');
      default:
        return this.#rule(numberBody(type === "integer", schema, place));
    }
  }

  #readObject(schema: Json, place: string, depth: number): string {
    const { properties = {}, required = [], additionalProperties: rest = true } = schema;
    if (!isObject(properties)) throw new UnsupportedSchema(place, "properties must be an object");
    if (!Array.isArray(required)) throw new UnsupportedSchema(place, "required must be a list");
    const missing = required.find((name) => !Object.hasOwn(properties, String(name)));
    if (missing !== undefined) {
      throw new UnsupportedSchema(place, `required ${missing} is not among the properties`);
    }
    const members = Object.entries(properties).map(([name, value]) => {
      const rule = this.#read(value, `${place}.properties.${name}`, depth + 1);
      return { body: `${literal(name)} ": " ${rule}`, isRequired: required.includes(name) };
    });
    if (members.length > 0) return this.#rule(`"{" ${this.#members(members)} "}"`);
    if (rest === false) return this.#rule('"{}"');
    const value = this.#read(rest, `${place}.additionalProperties`, depth + 1);
    const member = this.#rule(`string ": " ${value}`);
    return this.#rule(`"{" (${member} (", " ${member})*)? "}"`);
  }

  /** Properties in their order, of which some may be missing. */
  #members(members: readonly { readonly body: string; readonly isRequired: boolean }[]): string {
    // What may follow, behind something and behind nothing.
    let [next, first] = ['""', '""'];
    for (const { body, isRequired } of members.toReversed()) {
      const [nextHere, firstHere] = [`", " ${body} ${next}`, `${body} ${next}`];
      const last = first;
      first = this.#rule(isRequired ? firstHere : `${firstHere} | ${last}`);
      next = this.#rule(isRequired ? nextHere : `${nextHere} | ${next}`);
    }
    return first;
  }

  #readArray(schema: Json, place: string, depth: number): string {
    const { items = true, prefixItems = [], minItems: min = 0, maxItems: max } = schema;
    requireCount("minItems", min, limits.items, place);
    if (max !== undefined) requireCount("maxItems", max, limits.items, place);
    if (!Array.isArray(prefixItems) || prefixItems.length > limits.items) {
      throw new UnsupportedSchema(place, "prefixItems must be a list, and not a long one");
    }
    const prefix = prefixItems.map((item, i) =>
      this.#read(item, `${place}.prefixItems[${i}]`, depth + 1),
    );
    const isOpen = items !== false;
    const item = isOpen ? this.#read(items, `${place}.items`, depth + 1) : "value";
    const least = Math.min(min, Number.MAX_SAFE_INTEGER);
    const most = Math.min(max ?? Infinity, isOpen ? Infinity : prefix.length);
    if (least > most) throw new UnsupportedSchema(place, "minItems is more than there may be");
    return this.#rule(`"[" ${this.#items(prefix, item, least, most)} "]"`);
  }

  #items(prefix: readonly string[], item: string, least: number, most: number): string {
    if (most === 0) return '""';
    const count = Math.min(Math.max(prefix.length, least), most);
    // What may follow the named ones.
    const extra = most - count;
    const more = extra === 0 ? '""' : `(", " ${item})${extra === Infinity ? "*" : `{0,${extra}}`}`;
    let rest = count === 0 ? `(${item} ${limited(more, item, most)})?` : more;
    for (let i = count - 1; i >= 0; i--) {
      const body = `${i === 0 ? "" : '", " '}${prefix[i] ?? item} ${rest}`;
      rest = this.#rule(i >= least ? `${body} | ""` : body);
    }
    return rest;
  }
}

/** Behind a first item of `most`. */
function limited(more: string, item: string, most: number): string {
  return most === Infinity ? more : `(", " ${item}){0,${most - 1}}`;
}

function stringBody(schema: Json, place: string): string {
  const { minLength: min = 0, maxLength: max, pattern, format } = schema;
  const rules = ["pattern", "format", "minLength"].filter((key) => key in schema);
  if ("maxLength" in schema && !rules.includes("minLength")) rules.push("maxLength");
  if (rules.length > 1) {
    throw new UnsupportedSchema(place, `${rules[0]} beside ${rules[1]} cannot be enforced`);
  }
  requireCount("minLength", min, limits.stringLength, place);
  if (max !== undefined) requireCount("maxLength", max, limits.stringLength, place);
  const source = format === undefined ? pattern : formatPatterns[String(format)];
  if (format !== undefined && source === undefined) {
    throw new UnsupportedSchema(place, `format ${JSON.stringify(format)} cannot be enforced`);
  }
  if (source === undefined) {
    if (max !== undefined && min > max) {
      throw new UnsupportedSchema(place, "minLength is above maxLength");
    }
    return String.raw`"\"" char{${min},${max ?? ""}} "\""`;
  }
  const isShort = typeof source === "string" && source.length <= limits.patternLength;
  const grammar = isShort || format !== undefined ? patternGrammar(String(source)) : undefined;
  if (grammar !== undefined) return String.raw`"\"" (${grammar}) "\""`;
  throw new UnsupportedSchema(place, `pattern ${JSON.stringify(pattern)} cannot be enforced`);
}

function numberBody(isInteger: boolean, schema: Json, place: string): string {
  const bounds = ranges.map((key) => schema[key]);
  if (bounds.every((bound) => bound === undefined)) return isInteger ? "integer" : "number";
  const wrong = bounds.find((bound) => bound !== undefined && !Number.isSafeInteger(bound));
  if (wrong !== undefined) {
    throw new UnsupportedSchema(place, `the bound ${JSON.stringify(wrong)} is no whole number`);
  }
  const [min = -Infinity, max = Infinity, above, below] = bounds as (number | undefined)[];
  if (!isInteger && (above !== undefined || below !== undefined)) {
    throw new UnsupportedSchema(place, "exclusive bounds of a number cannot be enforced");
  }
  const low = Math.max(min, (above ?? -Infinity) + 1);
  const high = Math.min(max, (below ?? Infinity) - 1);
  if (low > high) throw new UnsupportedSchema(place, "no number is between the bounds");
  return isInteger ? wholeNumbers(low, high) : decimalNumbers(low, high);
}

function requireCount(
  name: string,
  value: unknown,
  max: number,
  place: string,
): asserts value is number {
  const isCount = typeof value === "number" && Number.isInteger(value);
  if (isCount && value >= 0 && value <= max) return;
  throw new UnsupportedSchema(place, `${name} must be a whole number from 0 to ${max}`);
}

/** A value as it stands in an answer. */
function literal(value: unknown): string {
  return JSON.stringify(JSON.stringify(value));
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
