/** What fields of requests are made of, and how a body is checked against them. */
import * as v from "valibot";
import { invalid } from "../api-error.ts";

/** A field that may be missing or null; both are undefined. */
export function maybe<T extends v.GenericSchema>(schema: T) {
  return v.pipe(
    v.nullish(schema),
    v.transform((value) => value ?? undefined),
  );
}

export const flag = v.boolean("must be true or false");
export const text = v.string("must be a string");

export function number(min: number, max: number) {
  const message = `must be a number from ${min} to ${max}`;
  return v.pipe(v.number(message), v.minValue(min, message), v.maxValue(max, message));
}

export function whole(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  const range = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
  const message = `must be a whole number ${range}`;
  return v.pipe(
    v.number(message),
    v.integer(message),
    v.minValue(min, message),
    v.maxValue(max, message),
  );
}

/** A field that zinc knows and cannot serve: null, and values that ask for nothing, are fine. */
export function refused(remedy: string, harmless: readonly unknown[] = []) {
  return v.optional(
    v.custom<unknown>(
      (value) => value === null || harmless.some((one) => Bun.deepEquals(one, value)),
      `is not supported; ${remedy}`,
    ),
  );
}

/** A field that is taken and has no effect, as the README says. */
export const ignored = v.optional(v.unknown());

export const stopField = maybe(
  v.union(
    [
      v.pipe(
        v.string(),
        v.transform((one) => [one]),
      ),
      v.pipe(v.array(v.string()), v.maxLength(16)),
    ],
    "must be a string or a list of up to 16 strings",
  ),
);

/** Fields that all of OpenAI's endpoints share, and the extras of common engines. */
export const samplingFields = {
  temperature: maybe(number(0, 100)),
  top_p: maybe(number(0, 1)),
  top_k: maybe(whole(-1)),
  min_p: maybe(number(0, 1)),
  repeat_penalty: maybe(number(0.01, 100)),
  repetition_penalty: maybe(number(0.01, 100)),
  presence_penalty: maybe(number(-2, 2)),
  frequency_penalty: maybe(number(-2, 2)),
  seed: maybe(v.pipe(v.number("must be a whole number"), v.integer("must be a whole number"))),
  logit_bias: maybe(
    v.record(
      v.pipe(v.string(), v.regex(/^\d{1,9}$/, "must name tokens by their ids")),
      number(-100, 100),
      "must be an object of token ids and numbers",
    ),
  ),
  ignore_eos: maybe(flag),
} as const;

export interface SamplingRequest {
  readonly temperature?: number | undefined;
  readonly top_p?: number | undefined;
  readonly top_k?: number | undefined;
  readonly min_p?: number | undefined;
  readonly repeat_penalty?: number | undefined;
  readonly repetition_penalty?: number | undefined;
  readonly presence_penalty?: number | undefined;
  readonly frequency_penalty?: number | undefined;
  readonly seed?: number | undefined;
  readonly logit_bias?: Readonly<Record<string, number>> | undefined;
}

interface LooseSchema extends v.GenericSchema {
  readonly entries: Readonly<Record<string, unknown>>;
}

/** A checked body, and the names of the fields that zinc does not know. */
export interface CheckedBody<T> {
  readonly value: T;
  readonly unknown: readonly string[];
}

/** Throws an `ApiError` that names the first field that is wrong. */
export function checkBody<S extends LooseSchema>(
  schema: S,
  body: unknown,
): CheckedBody<v.InferOutput<S>> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalid("the body must be a JSON object");
  }
  const result = v.safeParse(schema, body);
  if (!result.success) {
    const [issue] = result.issues;
    const param = pathOf(issue);
    throw invalid(`${param ?? "the body"} ${describe(issue)}`, param);
  }
  const unknown = Object.keys(body).filter((name) => !Object.hasOwn(schema.entries, name));
  return { value: result.output, unknown };
}

/** "messages[0].content" */
function pathOf(issue: v.BaseIssue<unknown>): string | undefined {
  const keys = (issue.path ?? []).map(({ key }) => key);
  if (keys.length === 0) return undefined;
  return keys
    .map((key, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${String(key)}`))
    .join("");
}

function describe({ message, received, expected }: v.BaseIssue<unknown>): string {
  if (!message.startsWith("Invalid ")) return message;
  if (received === "undefined") return "is missing";
  return expected === null ? `is not valid: ${received}` : `must be ${expected}, not ${received}`;
}
