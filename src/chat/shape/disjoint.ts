/** Whether schemas exclude each other, as far as types and constants tell. */

type Json = Readonly<Record<string, unknown>>;

/** False if some value may be valid under two of them. */
export function areDisjoint(schemas: readonly unknown[]): boolean {
  return schemas.every((one, i) => schemas.slice(i + 1).every((other) => areApart(one, other)));
}

function areApart(one: unknown, other: unknown): boolean {
  if (!isObject(one) || !isObject(other)) return false;
  const [a, b] = [one["type"], other["type"]];
  if (typeof a === "string" && typeof b === "string" && a !== b) {
    const numeric = ["number", "integer"];
    return !numeric.includes(a) || !numeric.includes(b);
  }
  const shared = requiredOf(one).filter((name) => requiredOf(other).includes(name));
  return shared.some((name) => {
    const [left, right] = [constantsOf(one, name), constantsOf(other, name)];
    return left.length > 0 && right.length > 0 && !left.some((value) => right.includes(value));
  });
}

function requiredOf({ required }: Json): string[] {
  return Array.isArray(required) ? required.map(String) : [];
}

/** The values that a property may have, as JSON, if they are listed. */
function constantsOf({ properties }: Json, name: string): string[] {
  const property = isObject(properties) ? properties[name] : undefined;
  if (!isObject(property)) return [];
  const values = "const" in property ? [property["const"]] : property["enum"];
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : [];
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
