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
  /** What the shell offers for the value. */
  readonly completes?: Completes;
  /** May be given several times; the value is the list. */
  readonly multiple?: boolean;
  /** Text → value, or a message. */
  readonly schema: v.GenericSchema<string, T>;
}

/**
 * Words to choose from, or where to find them: files, names of models that are here, both, names
 * of what can be removed, or what can be pulled.
 */
export type Completes = readonly string[] | "files" | "names" | "models" | "removable" | "sources";

// The value types differ from flag to flag; `Values` recovers each.
export type Flags = Readonly<Record<string, Flag<unknown>>>;

/** What parsing gives: each flag's value, or undefined if it was not given. */
export type Values<F extends Flags> = {
  readonly [K in keyof F]: F[K] extends Flag<infer T> ? T | undefined : never;
};

type Details = Pick<Flag<unknown>, "alias" | "completes">;

const onWords = ["1", "true", "on", "yes"];
const offWords = ["0", "false", "off", "no"];

/** On when it is there; a variable, or a value behind "=", may also switch it off. */
export function toggle(description: string, details: Details = {}): Flag<boolean> {
  const schema = v.pipe(
    v.string(),
    v.toLowerCase(),
    v.picklist([...onWords, ...offWords], "must be on or off"),
    v.transform((word) => onWords.includes(word)),
  );
  return { description, ...details, schema };
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
    v.nonEmpty("must not be empty"),
    v.transform((value): readonly string[] => [value]),
  );
  return { description, hint, multiple: true, schema };
}

export function oneOf<const T extends string>(options: readonly T[], description: string): Flag<T> {
  const choice = new Intl.ListFormat("en-GB", { type: "disjunction" }).format(options);
  const schema = v.picklist(options, `must be ${choice}`) as v.GenericSchema<string, T>;
  return { description, hint: options.join("|"), completes: options, schema };
}

/** Words that `parse` knows, these among them. */
export function parsed<T extends string>(
  hint: string,
  words: readonly string[],
  description: string,
  parse: (word: string) => T | undefined,
  problem: string,
): Flag<T> {
  const schema = v.pipe(
    v.string(),
    v.transform(parse),
    v.check((value) => value !== undefined, problem),
  ) as v.GenericSchema<string, T>;
  return { description, hint, completes: words, schema };
}

/** Which numbers a flag takes. */
export interface Range {
  readonly min?: number;
  /** As `min`, without the number itself. */
  readonly above?: number;
  readonly max?: number;
}

export function number(
  hint: string,
  description: string,
  range: Range,
  details: Details = {},
): Flag<number> {
  return { description, hint, ...details, schema: numeric(range) };
}

export function integer(
  hint: string,
  description: string,
  range: Range,
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
  const shape = "must be whole numbers with commas between";
  const item = v.pipe(numeric({ min }, shape), v.integer(shape));
  const schema = v.pipe(
    v.string(),
    v.transform((value) => value.split(",").map((part) => part.trim())),
    v.array(item),
  );
  return { description, hint, schema: schema as v.GenericSchema<string, readonly number[]> };
}

/** Words with commas between: "a,b". */
export function words(hint: string, description: string): Flag<readonly string[]> {
  const schema = v.pipe(
    v.string(),
    v.transform((value) => value.split(",").map((part) => part.trim())),
    v.array(v.pipe(v.string(), v.nonEmpty("must be names with commas between"))),
  );
  return { description, hint, schema: schema as v.GenericSchema<string, readonly string[]> };
}

const unitBytes: Readonly<Record<string, number>> = { k: 1e3, m: 1e6, g: 1e9, t: 1e12 };

/** Amounts of memory with commas between: "24GB,500MB". */
export function sizes(hint: string, description: string): Flag<readonly number[]> {
  const item = v.pipe(
    v.string(),
    v.regex(/^(\d+\.?\d*|\.\d+) ?[kmgt]b?$/i, "must be sizes like 24GB or 500MB"),
    v.transform((value) => {
      const [unit = ""] = /[kmgt]/.exec(value.toLowerCase()) ?? [];
      return Math.floor(Number.parseFloat(value) * (unitBytes[unit] ?? 1));
    }),
  );
  const schema = v.pipe(
    v.string(),
    v.transform((value) => value.split(",").map((part) => part.trim())),
    v.array(item),
  );
  return { description, hint, schema: schema as v.GenericSchema<string, readonly number[]> };
}

function numeric(range: Range, shape = "must be a number") {
  const { min = Number.NEGATIVE_INFINITY, above = Number.NEGATIVE_INFINITY } = range;
  const { max = Number.MAX_SAFE_INTEGER } = range;
  return v.pipe(
    v.string(),
    // Number("") is 0, and "0x10" or " 7" are nobody's intention.
    v.regex(/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, shape),
    v.transform(Number),
    v.check((value) => value >= min && value > above, describeRange(range)),
    v.maxValue(max, range.max === undefined ? `must be at most ${max}` : describeRange(range)),
  );
}

function describeRange({ min, above, max }: Range): string {
  if (above !== undefined) {
    return max === undefined ? `must be above ${above}` : `must be above ${above} and up to ${max}`;
  }
  return max === undefined ? `must be at least ${min}` : `must be ${min} to ${max}`;
}
