/**
 * Sets of characters as the grammar engine takes them. Its own sets are right within ASCII, and so
 * are those of all but some of ASCII; of ranges beyond it makes nonsense. So characters beyond are
 * listed, one by one.
 */

/** The first and the last character, as numbers. */
export type CharacterRange = readonly [number, number];

/** All characters but 0, which no model writes. */
export const anyCharacter: CharacterRange = [1, 0x10ffff];

const asciiMax = 0x7f;

/** Characters beyond ASCII that a set may have, unless it has all: each takes time to compile. */
export const listedMax = 4096;

/**
 * A grammar's element that matches one character in, or in none, of the ranges; undefined if it
 * would list too many.
 */
export function characterSet(
  ranges: readonly CharacterRange[],
  isNegated = false,
): string | undefined {
  const chosen = isNegated ? complementOf(ranges) : ranges;
  const ascii = chosen.flatMap((range) => within(range, 1, asciiMax));
  const beyond = chosen.flatMap((range) => within(range, asciiMax + 1, anyCharacter[1]));
  const isAll = complementOf(beyond).every(([, last]) => last <= asciiMax);
  if (isAll) {
    // What is left of ASCII; the engine wants something there.
    const rest = complementOf(ascii).flatMap((range) => within(range, 1, asciiMax));
    return `[^${(rest.length === 0 ? [[0, 0] as const] : rest).map(spellRange).join("")}]`;
  }
  const count = beyond.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  if (count > listedMax) return undefined;
  const options = ascii.length === 0 ? [] : [`[${ascii.map(spellRange).join("")}]`];
  for (const [first, last] of beyond) {
    for (let code = first; code <= last; code++) {
      if (!isSurrogate(code)) options.push(`"${spellCode(code)}"`);
    }
  }
  if (options.length === 0) return undefined;
  return options.length === 1 ? options[0] : `(${options.join(" | ")})`;
}

function complementOf(ranges: readonly CharacterRange[]): CharacterRange[] {
  const [first, last] = anyCharacter;
  const gaps: CharacterRange[] = [];
  let next = first;
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (from > next) gaps.push([next, from - 1]);
    next = Math.max(next, to + 1);
  }
  return next <= last ? [...gaps, [next, last]] : gaps;
}

function within([first, last]: CharacterRange, from: number, to: number): CharacterRange[] {
  const [low, high] = [Math.max(first, from), Math.min(last, to)];
  return low <= high ? [[low, high]] : [];
}

export function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xe000;
}

function spellRange([first, last]: CharacterRange): string {
  return `${spellCode(first)}-${spellCode(last)}`;
}

/** By its number, whichever character it is. */
export function spellCode(code: number): string {
  return `\\U${code.toString(16).padStart(8, "0")}`;
}
