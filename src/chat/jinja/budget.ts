/** What the rendering that runs may still use. Rendering is synchronous: there is one at a time. */

import { limitError } from "../template-error.ts";

/** Bounds of one rendering. */
export interface TemplateLimits {
  /** Wall-clock time in milliseconds. */
  readonly timeMs: number;
  /** Length of the output, and of any one string, in UTF-16 units. */
  readonly outputLength: number;
  /** Nested macro calls. Real templates recurse over JSON schemas, a few dozen levels at most. */
  readonly depth: number;
}

const defaults: TemplateLimits = { timeMs: 2000, outputLength: 16 * 1024 * 1024, depth: 150 };
/** All text that is made, as a multiple of the output. */
const TOTAL_FACTOR = 32;
/** What a value costs, in characters. */
const VALUE_LENGTH = 32;
/** Units of work between two looks at the clock: well under a millisecond. */
const WORK_PER_CHECK = 4096;

let limits = defaults;
let deadline = Number.POSITIVE_INFINITY;
let charactersLeft = Number.POSITIVE_INFINITY;
let workLeft = WORK_PER_CHECK;
let depth = 0;

/** Begins a rendering. */
export function startBudget(given: Partial<TemplateLimits> = {}): void {
  limits = { ...defaults, ...given };
  deadline = performance.now() + limits.timeMs;
  charactersLeft = limits.outputLength * TOTAL_FACTOR;
  depth = 0;
}

/** Pays for work: one unit is about the evaluation of one node. */
export function spend(units: number): void {
  workLeft -= units;
  if (workLeft > 0) return;
  workLeft = WORK_PER_CHECK;
  if (performance.now() < deadline) return;
  throw limitError(`the template ran longer than ${limits.timeMs} ms`);
}

/** Pays for text, garbage included, and for the values that hold it. */
export function reserve(length: number, values = 0): void {
  checkLength(length);
  const cost = length + values * VALUE_LENGTH;
  spend(1 + cost / 64);
  charactersLeft -= cost;
  if (charactersLeft < 0) throw limitError("the template goes through too much text");
}

/** Refuses to build a string of more than the allowed length. */
export function checkLength(length: number): void {
  if (length <= limits.outputLength) return;
  throw limitError(`the template produces more than ${limits.outputLength} characters`);
}

/** Runs `body` one macro call deeper. */
export function nested<T>(body: () => T): T {
  if (++depth > limits.depth) throw limitError("the template's macros recurse too deeply");
  try {
    return body();
  } finally {
    depth--;
  }
}
