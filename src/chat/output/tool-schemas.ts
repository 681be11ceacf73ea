/** What is known of the tools that were offered: their names, and what their parameters take. */

/** The types of JSON, with integers among the numbers. */
type JsonType = "string" | "number" | "boolean" | "null" | "object" | "array";

const jsonTypes: readonly string[] = ["string", "number", "boolean", "null", "object", "array"];

export class ToolSchemas {
  /** Name → the schemas of its parameters. */
  readonly #tools = new Map<string, Readonly<Record<string, unknown>>>();

  /** As a request brings them, `{"type": "function", "function": {…}}`; others are passed over. */
  constructor(tools: readonly unknown[]) {
    for (const tool of tools) {
      const definition = recordOf(recordOf(tool)["function"] ?? tool);
      const { name } = definition;
      if (typeof name !== "string") continue;
      this.#tools.set(name, recordOf(recordOf(definition["parameters"])["properties"]));
    }
  }

  get isEmpty(): boolean {
    return this.#tools.size === 0;
  }

  has(name: string): boolean {
    return this.#tools.has(name);
  }

  /** Whether a parameter takes text and nothing else, so that a value needs no look to be one. */
  takesTextAlone(tool: string, parameter: string): boolean {
    const types = this.#typesOf(tool, parameter);
    return types?.length === 1 && types[0] === "string";
  }

  /**
   * A value that stands in an answer without quotes, as JSON: what reads as a value of a type that
   * the parameter takes is that value, and everything else is text.
   */
  valueOf(tool: string, parameter: string, text: string): string {
    const types = this.#typesOf(tool, parameter);
    const json = pythonWords.get(text) ?? text;
    try {
      const value: unknown = JSON.parse(json);
      const isTaken =
        types === undefined ? typeof value !== "string" : types.includes(typeOf(value));
      return isTaken ? json.trim() : JSON.stringify(text);
    } catch {
      return JSON.stringify(text);
    }
  }

  #typesOf(tool: string, parameter: string): JsonType[] | undefined {
    return typesOf(recordOf(this.#tools.get(tool)?.[parameter]));
  }
}

/** How Python prints what JSON calls otherwise; templates print so, and models follow them. */
const pythonWords: ReadonlyMap<string, string> = new Map([
  ["True", "true"],
  ["False", "false"],
  ["None", "null"],
]);

/** The types that a schema allows; undefined where it does not say. */
function typesOf(schema: Readonly<Record<string, unknown>>): JsonType[] | undefined {
  const { type, enum: values, anyOf, oneOf } = schema;
  const named = [type].flat().map((name) => (name === "integer" ? "number" : name));
  const types = named.filter((name): name is JsonType => jsonTypes.includes(String(name)));
  if (types.length > 0) return types;
  if (Array.isArray(values) && values.length > 0) return [...new Set(values.map(typeOf))];
  const choices = Array.isArray(anyOf) ? anyOf : oneOf;
  if (!Array.isArray(choices) || choices.length === 0) return undefined;
  const each = choices.map((choice) => typesOf(recordOf(choice)));
  return each.includes(undefined) ? undefined : each.flatMap((list) => list ?? []);
}

function typeOf(value: unknown): JsonType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  const type = typeof value;
  return type === "string" || type === "number" || type === "boolean" ? type : "object";
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
  return isRecord ? (value as Readonly<Record<string, unknown>>) : {};
}
