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

/** Throws a "usage" error that refers to the help of `program`, such as "zinc run". */
export function parseOptions<const F extends Flags>(
  args: readonly string[],
  flags: F,
  env: NodeJS.ProcessEnv = process.env,
  program = "zinc",
): Parsed<F> {
  const help = `see ${program} --help`;
  const values: Record<string, unknown> = {};
  const positionals: string[] = [];
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === "--") {
      positionals.push(...rest.splice(0));
    } else if (!arg.startsWith("-") || arg === "-") {
      positionals.push(arg);
    } else {
      const found = findFlag(arg, flags);
      if (found === undefined) throw unknownFlag(arg, flags, help);
      const { key, flag, name } = found;
      const parsed = check(name, flag, valueOf(found, rest, flags), help);
      values[key] =
        flag.multiple === true ? [...((values[key] as []) ?? []), ...(parsed as [])] : parsed;
    }
  }
  for (const [key, flag] of Object.entries(flags)) {
    const fallback = env[variableName(key)];
    if (values[key] !== undefined || fallback === undefined || fallback === "") continue;
    values[key] = check(variableName(key), flag, fallback, "correct or unset the variable");
  }
  return { values: values as Values<F>, positionals };
}

interface Found {
  readonly key: string;
  readonly flag: Flag<unknown>;
  /** The spelling that was used: "--ctx" or "-c". */
  readonly name: string;
  /** What stands behind "=", or directly behind a letter. */
  readonly attached: string | undefined;
}

function findFlag(arg: string, flags: Flags): Found | undefined {
  return findExact(arg, flags) ?? findLetter(arg, flags);
}

function findExact(arg: string, flags: Flags): Found | undefined {
  const [name, attached] = splitOnce(arg, "=");
  const row = Object.entries(flags).find(([key, flag]) => spellings(key, flag).includes(name));
  return row && { key: row[0], flag: row[1], name, attached };
}

/** -n5: a letter with its value behind it. */
function findLetter(arg: string, flags: Flags): Found | undefined {
  const rows = Object.entries(flags);
  // "-model" is no "-m odel".
  if (rows.some(([key]) => splitOnce(arg, "=")[0] === `-${spelling(key)}`)) return undefined;
  const letter = arg.slice(0, 2);
  const found = rows.find(([, flag]) => flag.hint !== undefined && letter === `-${flag.alias}`);
  if (found === undefined) return undefined;
  const [key, flag] = found;
  const value = arg.slice(2);
  return v.is(flag.schema, value) ? { key, flag, name: letter, attached: value } : undefined;
}

/** "--ctx" and "-c". */
function spellings(key: string, { alias }: Flag<unknown>): string[] {
  return [`--${spelling(key)}`, ...(alias === undefined ? [] : [`-${alias}`])];
}

function unknownFlag(arg: string, flags: Flags, help: string): UserError {
  const [name] = splitOnce(arg, "=");
  const known = Object.entries(flags).flatMap(([key, flag]) => spellings(key, flag));
  return new UserError("usage", `unknown flag ${shorten(name)}`, suggestion(name, known) ?? help);
}

function valueOf({ flag, name, attached }: Found, rest: string[], flags: Flags): string {
  if (flag.hint === undefined) return attached ?? "on";
  if (attached !== undefined) return attached;
  const value = rest.shift();
  if (value === undefined) {
    throw new UserError("usage", `${name} needs a value`, `write ${name} <${flag.hint}>`);
  }
  // "--prompt --temp 0": the value was forgotten.
  const next = findExact(value, flags);
  if (next === undefined) return value;
  throw new UserError(
    "usage",
    `${name} needs a value and is followed by the flag ${next.name}`,
    `write ${name}=${shorten(value)} if that is the value`,
  );
}

function check(name: string, flag: Flag<unknown>, value: string, remedy: string): unknown {
  const result = v.safeParse(flag.schema, value);
  if (result.success) return result.output;
  const shown = value === "" ? '""' : shorten(value);
  throw new UserError("usage", `${name} ${shown}: ${result.issues[0].message}`, remedy);
}

/** For messages: whole texts are pasted behind the wrong flag. */
export function shorten(text: string): string {
  return text.length > shownLength ? `${text.slice(0, shownLength)}…` : text;
}

const shownLength = 60;

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** "did you mean --prompt?", if something known is near. */
export function suggestion(wrong: string, known: readonly string[]): string | undefined {
  const [near] = known
    .map((name) => ({ name, distance: distance(wrong, name) }))
    .filter((row) => row.distance <= tolerance(row.name))
    .toSorted((a, b) => a.distance - b.distance);
  return near === undefined ? undefined : `did you mean ${near.name}?`;
}

/** One slip for every three letters. */
function tolerance(name: string): number {
  return Math.max(1, Math.floor(name.replace(/^-+/, "").length / 3));
}

function distance(wrong: string, name: string): number {
  // Between letters only upper and lower case are near: -C is -c, and -x is nothing.
  if (/^-.?$/.test(wrong)) return wrong.toLowerCase() === name.toLowerCase() ? 0 : Infinity;
  // --temperature and --max
  const shorter = Math.min(wrong.length, name.length);
  if (shorter >= "--max".length && wrong.slice(0, shorter) === name.slice(0, shorter)) return 1;
  return editDistance(wrong, name);
}

/** Levenshtein's distance, in which two neighbours that changed places count once. */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let previous: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_unused, i) => i);
  for (let i = 1; i <= a.length; i++) {
    [before, previous, row] = [previous, row, [i]];
    for (let j = 1; j <= b.length; j++) {
      const replace = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwapped ? (before[j - 2] ?? 0) + 1 : Infinity;
      row.push(Math.min(replace, swap, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
  }
  return row[b.length] ?? 0;
}
