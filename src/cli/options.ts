/**
 * Arguments → checked values. Strict: an unknown flag, a missing or a bad value is an error with a
 * suggestion.
 */
import * as v from "valibot";
import { UserError } from "../errors.ts";
import type { Flag, Flags, Values } from "./flag.ts";

export interface Parsed<F extends Flags> {
  readonly values: Values<F>;
  readonly positionals: readonly string[];
}

/** "maxTokens" → "max-tokens". */
export function spelling(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** "maxTokens" → "ZINC_MAX_TOKENS": what stands in for a flag that is not given. */
export function variableName(key: string): string {
  return `ZINC_${spelling(key).replaceAll("-", "_").toUpperCase()}`;
}

export function parseOptions<const F extends Flags>(
  args: readonly string[],
  flags: F,
  env: NodeJS.ProcessEnv = process.env,
): Parsed<F> {
  const values: Record<string, unknown> = {};
  const positionals: string[] = [];
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === "--") {
      positionals.push(...rest.splice(0));
    } else if (!arg.startsWith("-") || arg === "-") {
      positionals.push(arg);
    } else {
      const { key, flag, attached } = findFlag(arg, flags);
      const value = valueOf(arg, flag, attached, rest);
      const parsed = check(arg.replace(/=.*/s, ""), flag, value);
      values[key] =
        flag.multiple === true ? [...((values[key] as []) ?? []), ...(parsed as [])] : parsed;
    }
  }
  for (const [key, flag] of Object.entries(flags)) {
    const fallback = env[variableName(key)];
    if (values[key] !== undefined || fallback === undefined || fallback === "") continue;
    values[key] = check(variableName(key), flag, fallback);
  }
  return { values: values as Values<F>, positionals };
}

interface Found {
  readonly key: string;
  readonly flag: Flag<unknown>;
  /** What stands behind "=", or directly behind a letter. */
  readonly attached: string | undefined;
}

function findFlag(arg: string, flags: Flags): Found {
  const [name = "", attached] = splitOnce(arg, "=");
  for (const [key, flag] of Object.entries(flags)) {
    if (name === `--${spelling(key)}` || (flag.alias !== undefined && name === `-${flag.alias}`)) {
      return { key, flag, attached };
    }
  }
  // -n5: a letter with its value behind it.
  const byLetter = Object.entries(flags).find(
    ([, flag]) =>
      flag.alias !== undefined &&
      flag.hint !== undefined &&
      /^-\w/.test(arg) &&
      arg.startsWith(`-${flag.alias}`),
  );
  if (byLetter !== undefined)
    return { key: byLetter[0], flag: byLetter[1], attached: arg.slice(2) };
  const known = Object.entries(flags).flatMap(([key, flag]) => [
    `--${spelling(key)}`,
    ...(flag.alias === undefined ? [] : [`-${flag.alias}`]),
  ]);
  throw new UserError("usage", `unknown flag ${name}`, suggestion(name, known) ?? "see --help");
}

function valueOf(
  arg: string,
  flag: Flag<unknown>,
  attached: string | undefined,
  rest: string[],
): string {
  if (flag.hint === undefined) return attached ?? "1";
  const value = attached ?? rest[0];
  if (value === undefined) {
    throw new UserError("usage", `${arg} needs a value`, `write ${arg} <${flag.hint}>`);
  }
  if (attached === undefined) rest.shift();
  return value;
}

function check(name: string, flag: Flag<unknown>, value: string): unknown {
  const result = v.safeParse(flag.schema, value);
  if (result.success) return result.output;
  throw new UserError(
    "usage",
    `${name} ${value === "" ? '""' : value}: ${result.issues[0].message}`,
    "see --help",
  );
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** "did you mean --prompt?", if something known is near. */
export function suggestion(wrong: string, known: readonly string[]): string | undefined {
  const near = known
    .map((name) => ({ name, distance: editDistance(wrong, name) }))
    .filter(({ name, distance }) => distance <= Math.max(1, Math.floor(name.length / 3)))
    .toSorted((a, b) => a.distance - b.distance)[0];
  return near === undefined ? undefined : `did you mean ${near.name}?`;
}

/** Levenshtein's distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_unused, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const previous = row;
    row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(replace, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
  }
  return row[b.length] ?? 0;
}
