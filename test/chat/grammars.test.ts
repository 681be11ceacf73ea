/**
 * Answers of a given shape: whatever tokens a model would like, what comes out is valid. Ajv is the
 * judge; schemas that cannot be enforced are refused.
 */
import { describe, expect, test } from "bun:test";
import { Ajv2020 } from "ajv/dist/2020";
import { BadShape, type AnswerShape } from "../../src/chat/shape/answer-shape.ts";
import { Grammars, vocabularyOf } from "../../src/chat/shape/grammars.ts";
import { builtinChat } from "../helpers/builtin-chat.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

const { tokenizer } = await builtinChat();
const grammars = new Grammars(() => vocabularyOf(tokenizer));
const [endToken = 0] = tokenizer.endOfGeneration;
const ids = Array.from({ length: tokenizer.vocabSize }, (_unused, id) => id);
const ajv = new Ajv2020({ strict: false, formats: { date: /^\d{4}-\d\d-\d\d$/ } });

/** A text of tokens that the mask allows, taken by chance, or undefined if it is not over soon. */
async function anyText(shape: AnswerShape, seed: number): Promise<string | undefined> {
  const random = new SeededRandom(seed);
  const mask = await grammars.compile(shape);
  const tokens: number[] = [];
  for (let count = 0; count < 160; count++) {
    const isAllowed = (id: number) => (((mask.allowed[id >> 5] ?? 0) >> (id & 31)) & 1) === 1;
    const allowed = ids.filter(isAllowed);
    if (isAllowed(endToken) && (allowed.length === 1 || count > 20)) break;
    const drawn = Array.from(
      { length: 12 },
      () => allowed[Math.floor(random.between(0, allowed.length))] ?? endToken,
    );
    // What closes something is preferred, or strings would hardly end.
    const chosen = drawn.find((id) => /["\]}n]/.test(tokenizer.decode([id]))) ?? drawn[0]!;
    if (tokenizer.endOfGeneration.has(chosen)) break;
    tokens.push(chosen);
    await mask.accept(chosen);
    if (count === 159) return undefined;
  }
  mask.close();
  return tokenizer.decode(tokens);
}

const person = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    age: { type: "integer", minimum: 0, maximum: 150 },
    email: { type: ["string", "null"] },
    tags: { type: "array", items: { enum: ["a", "b", 3] }, maxItems: 3 },
  },
  required: ["name", "age"],
  additionalProperties: false,
};

const tree = {
  $ref: "#/$defs/node",
  $defs: {
    node: {
      type: "object",
      properties: {
        value: { type: "number" },
        next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
      },
      required: ["value", "next"],
    },
  },
};

describe("whatever is made under a schema is valid", () => {
  test.each([
    ["a person", person],
    ["a tree", tree],
    ["digits", { type: "string", pattern: "^\\d{4}$" }],
    ["a word", { type: "string", pattern: "^[A-Z][a-z]{2,5}$" }],
    ["letters with accents", { type: "string", pattern: "^[à-ü]{2}$" }],
    ["any few characters", { type: "string", pattern: "^.{1,4}$" }],
    ["characters but digits", { type: "string", pattern: "^[^0-9]{1,4}$" }],
    ["a date", { type: "string", format: "date" }],
    ["a constant", { const: { a: [1, null] } }],
    ["an optional property", { type: "object", properties: { a: {}, b: { type: "null" } } }],
    ["an empty object", { type: "object", additionalProperties: false }],
    ["a table", { type: "object", additionalProperties: { type: "boolean" } }],
    ["whole numbers", { type: "array", items: { type: "integer", minimum: -12, maximum: 345 } }],
    ["numbers", { type: "array", items: { type: "number", minimum: -1, maximum: 12 } }],
    ["above", { type: "array", items: { type: "integer", exclusiveMinimum: 98 }, minItems: 2 }],
    ["long", { type: "string", minLength: 3, maxLength: 6 }],
    ["an optional pair", { type: "array", prefixItems: [{ const: 1 }, { const: 2 }], maxItems: 2 }],
    ["alternatives", { type: "string", pattern: "^(?:a|bc|)[x-z]?(d{2,3})+$" }],
    ["a boolean or a number", { anyOf: [{ type: "boolean" }, { type: "integer", minimum: 5 }] }],
    [
      "one of two kinds",
      {
        oneOf: ["cat", "dog"].map((kind) => ({
          type: "object",
          properties: { kind: { const: kind }, name: { type: "string", maxLength: 5 } },
          required: ["kind"],
        })),
      },
    ],
    [
      "a pair",
      { type: "array", prefixItems: [{ type: "boolean" }, { type: "null" }], items: false },
    ],
    ["two or three", { type: "array", items: { type: "boolean" }, minItems: 2, maxItems: 3 }],
  ])("%s", async (_name, schema) => {
    const isValid = ajv.compile(schema);
    let finished = 0;
    for (let seed = 1; seed <= 4; seed++) {
      const text = await anyText({ type: "schema", schema }, seed);
      if (text === undefined) continue;
      finished++;
      expect({ text, valid: isValid(JSON.parse(text)) }).toEqual({ text, valid: true });
    }
    expect(finished).toBeGreaterThan(0);
  });

  test("an object, where JSON is all that is asked for", async () => {
    const text = (await anyText({ type: "json" }, 3)) ?? "{}";
    expect(typeof JSON.parse(text)).toBe("object");
    expect(text).toStartWith("{");
  });
});

/** Whether the mask of a schema lets a text through, token by token, and then the end. */
function isTaken(schema: unknown, text: string): Promise<boolean> {
  return isTakenBy({ type: "schema", schema }, text);
}

async function isTakenBy(shape: AnswerShape, text: string): Promise<boolean> {
  const mask = await grammars.compile(shape);
  const tokens = [...tokenizer.encode(text), endToken];
  let isFine = true;
  for (const token of tokens) {
    isFine &&= (((mask.allowed[token >> 5] ?? 0) >> (token & 31)) & 1) === 1;
    await mask.accept(token);
  }
  mask.close();
  return isFine;
}

describe("characters", () => {
  test("beyond ASCII count as one each, however many tokens they have", async () => {
    const two = { type: "string", minLength: 2, maxLength: 2 };
    expect(await isTaken(two, '"é😀"')).toBe(true);
    expect(await isTaken(two, '"é😀歪"')).toBe(false);
    expect(await isTaken(two, '"é"')).toBe(false);
    expect(await isTaken({ enum: ["歪", "é😀"] }, '"é😀"')).toBe(true);
    expect(await isTaken({ const: { ключ: "é" } }, '{"ключ":"é"}')).toBe(true);
  });

  test("that JSON escapes may be escaped, but not as halves", async () => {
    const text = { type: "string" };
    expect(await isTaken(text, '"a\\n\\u00e9"')).toBe(true);
    expect(await isTaken(text, '"\\ud83d"')).toBe(false);
    expect(await isTaken(text, '"a\nb"')).toBe(false);
  });
});

describe("a grammar in GBNF", () => {
  test.each([
    ["of moves", 'root ::= ([a-h] [1-8] " "?){2}', "e2 e4", "e2 e9"],
    ["over lines", 'root ::= (\n  "a" |\n  "b"\n)+\n# end', "abba", "abc"],
    ["of any letters", "root ::= .{2}", "é😀", "é😀歪"],
    ["of none of some", "root ::= [^0-9\\n]+", "a-b", "a1"],
    ["of none beyond ASCII", "root ::= [^\\x80-\\U0010ffff]+", "a-b", "é"],
    ["of letters with accents", "root ::= [à-ü]{2}", "éü", "éÿ"],
    ["of letters of all kinds", "root ::= [a😀歪]+", "歪a😀", "b"],
    ["of all beyond ASCII", "root ::= [^\\x01-\\x7f]+", "歪é😀", "a"],
    ["of a dash and brackets", "root ::= [\\[\\]a-]+", "[-a]", "b"],
    ["that begins with itself", 'root ::= root "+" n | n\nn ::= [0-9]+', "1+22+3", "1+"],
    ["of repeats of repeats", 'root ::= ("a"* "b"?)*', "aabab", "c"],
    ["of nothing or something", 'root ::= "x"? | "yes" | ""', "yes", "no"],
    ["of exact numbers", 'root ::= "a"{0} "b"{2} "c"{,1} "d"{1,}', "bbdd", "bd"],
    ["of escapes", 'root ::= "\\x41\\u00e9\\U0001f600\\t\\"\\\\"', 'Aé😀\t"\\', "A"],
  ])("%s", async (_name, grammar, good, bad) => {
    expect(await isTakenBy({ type: "grammar", grammar }, good)).toBe(true);
    expect(await isTakenBy({ type: "grammar", grammar }, bad)).toBe(false);
  });

  test("that is wrong is refused by its line", async () => {
    const shape = { type: "grammar", grammar: "root ::= a" } as const;
    const refused = await grammars.compile(shape).catch((error) => error);
    expect(refused).toBeInstanceOf(BadShape);
    expect(refused).toMatchObject({
      kind: "usage",
      message: "grammar, line 1: there is no rule a",
      code: "invalid_grammar",
    });
  });
});

describe("a schema is refused", () => {
  const deep = (depth: number): object =>
    depth === 0 ? { type: "null" } : { type: "array", items: deep(depth - 1) };

  test.each([
    ["for looking ahead", { type: "string", pattern: "(?=a)b" }, 'pattern "(?=a)b"'],
    ["for looking back", { type: "string", pattern: "(a)\\1" }, "pattern"],
    ["for a quote in a pattern", { type: "string", pattern: '^"$' }, "pattern"],
    ["for half a number", { type: "number", minimum: 0.5 }, "the bound 0.5 is no whole number"],
    ["for no number", { type: "integer", minimum: 5, maximum: 4 }, "no number is between"],
    ["for no pattern at all", { type: "string", pattern: "[" }, "pattern"],
    ["for a circle", { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } }, "in a circle"],
    ["for a reference to nothing", { $ref: "#/$defs/a" }, "leads nowhere"],
    ["for a reference to elsewhere", { $ref: "other.json" }, "leads out of the schema"],
    [
      "for patternProperties",
      { type: "object", patternProperties: { a: {} } },
      "patternProperties cannot be enforced",
    ],
    ["for an unknown format", { type: "string", format: "color" }, 'format "color"'],
    ["for an empty enum", { enum: [] }, "enum is empty"],
    ["for being deep", deep(200), "nested more than 24 deep"],
    ["for a huge array", { type: "array", items: {}, maxItems: 1e9 }, "maxItems"],
    ["for not", { not: { type: "null" } }, "not supported"],
    ["for if", { type: "object", if: {} }, "if cannot be enforced"],
    ["for multipleOf", { type: "integer", multipleOf: 3 }, "multipleOf cannot be enforced"],
    ["for uniqueItems", { type: "array", uniqueItems: true }, "uniqueItems cannot be enforced"],
    ["for two rules of a string", { type: "string", pattern: "a", minLength: 2 }, "beside"],
    ["for anyOf beside properties", { anyOf: [{}], properties: {} }, "beside"],
    [
      "for alternatives that overlap",
      { oneOf: [{ type: "number" }, { type: "integer" }] },
      "oneOf",
    ],
    ["for allOf", { allOf: [{ type: "null" }, {}] }, "allOf"],
    ["for being no schema", 5, "must be an object or true"],
    ["for an unknown type", { type: "date" }, 'type "date" is not supported'],
    ["for requiring what is not there", { type: "object", required: ["a"] }, "required a"],
  ])("%s", async (_reason, schema, message) => {
    const refused = await grammars.compile({ type: "schema", schema }).catch((error) => error);
    expect(refused).toBeInstanceOf(BadShape);
    expect(refused).toMatchObject({ code: "unsupported_schema", shape: "schema" });
    expect((refused as BadShape).message).toContain(message);
  });

  test("by the name of the place", async () => {
    const schema = { type: "object", properties: { a: { type: "array", items: { not: {} } } } };
    const refused = await grammars.compile({ type: "schema", schema }).catch((error) => error);
    expect((refused as BadShape).message).toStartWith("schema.properties.a.items: ");
  });
});
