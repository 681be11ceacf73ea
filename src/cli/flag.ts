/**
 * What a flag of the command line is: its spelling, its value's type and range, and what help says
 * of it.
 */
import * as v from "valibot";

export interface Flag<T> {
  readonly description: string;
  /** The one-letter spelling. */
  readonly alias?: string;
  /** What the value is, for help: "file", "n". Flags without one are on or off. */
  readonly hint?: string;
  /** May be given several times; the value is the list. */
  readonly multiple?: boolean;
  /** Text → value, or a message. */
  readonly schema: v.GenericSchema<string, T>;
}

// The value types differ from flag to flag; `Values` recovers each.
export type Flags = Readonly<Record<string, Flag<unknown>>>;

/** What parsing gives: each flag's value, or undefined if it was not given. */
export type Values<F extends Flags> = {
  readonly [K in keyof F]: F[K] extends Flag<infer T> ? T | undefined : never;
};

type Details = Pick<Flag<unknown>, "alias">;

/** On when it is there. */
export function toggle(description: string, details: Details = {}): Flag<boolean> {
  return { description, ...details, schema: v.pipe(v.string(), v.transform(isOn)) };
}

/** The values that switch an environment variable off. */
function isOn(text: string): boolean {
  return !["", "0", "false", "off", "no"].includes(text.toLowerCase());
}

export function text(hint: string, description: string, details: Details = {}): Flag<string> {
  return {
    description,
    hint,
    ...details,
    schema: v.pipe(v.string(), v.nonEmpty("must not be empty")),
  };
}

/** Text that may be empty: the command says what that means. */
export function anyText(hint: string, description: string, details: Details = {}): Flag<string> {
  return { description, hint, ...details, schema: v.string() };
}

export function texts(hint: string, description: string): Flag<readonly string[]> {
  const schema = v.pipe(
    v.string(),
    v.transform((value): readonly string[] => [value]),
  );
  return { description, hint, multiple: true, schema };
}

export function oneOf<const T extends string>(options: readonly T[], description: string): Flag<T> {
  const schema = v.picklist(options, `must be ${options.join(" or ")}`) as v.GenericSchema<
    string,
    T
  >;
  return { description, hint: options.join("|"), schema };
}

export function number(
  hint: string,
  description: string,
  range: { min: number; max?: number },
  details: Details = {},
): Flag<number> {
  return { description, hint, ...details, schema: numeric(range) };
}

export function integer(
  hint: string,
  description: string,
  range: { min: number; max?: number },
  details: Details = {},
): Flag<number> {
  return {
    description,
    hint,
    ...details,
    schema: v.pipe(numeric(range), v.integer("must be a whole number")),
  };
}

/** Whole numbers with commas between: "1,2,3". */
export function integers(hint: string, description: string, min = 0): Flag<readonly number[]> {
  const item = v.pipe(numeric({ min }), v.integer("must be whole numbers with commas between"));
  const schema = v.pipe(
    v.string(),
    v.transform((value) => value.split(",").map((part) => part.trim())),
    v.array(item),
  );
  return { description, hint, schema: schema as v.GenericSchema<string, readonly number[]> };
}

function numeric({ min, max = Number.MAX_SAFE_INTEGER }: { min: number; max?: number }) {
  const limit =
    max === Number.MAX_SAFE_INTEGER ? `must be at least ${min}` : `must be ${min} to ${max}`;
  return v.pipe(
    v.string(),
    // Number("") is 0, and "0x10" or " 7" are nobody's intention.
    v.regex(/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, "must be a number"),
    v.transform(Number),
    v.minValue(min, limit),
    v.maxValue(max, limit),
  );
}
