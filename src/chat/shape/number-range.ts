/** Numbers between two bounds as a grammar of their digits. */

/** Whole numbers from `low` to `high`, either of which may be infinite. */
export function wholeNumbers(low: number, high: number): string {
  const parts: string[] = [];
  if (low < 0) {
    const [least, most] = [Math.max(1, -high), -low];
    if (least <= most) parts.push(`"-" (${magnitudes(least, most)})`);
  }
  if (high >= 0) parts.push(magnitudes(Math.max(0, low), high));
  return parts.map((part) => `(${part})`).join(" | ");
}

/**
 * Numbers from `low` to `high`, which are whole or infinite, with up to six digits behind the
 * point.
 */
export function decimalNumbers(low: number, high: number): string {
  const parts: string[] = [];
  if (low < 0) parts.push(`"-" (${decimals(Math.max(0, -high), -low)})`);
  if (high >= 0) parts.push(decimals(Math.max(0, low), high));
  return parts.map((part) => `(${part})`).join(" | ");
}

const fraction = '"." [0-9]{1,6}';

function decimals(low: number, high: number): string {
  if (high === Number.POSITIVE_INFINITY) return `(${magnitudes(low, high)}) (${fraction})?`;
  const last = `"${high}" ("." "0"{1,6})?`;
  return low < high ? `(${magnitudes(low, high - 1)}) (${fraction})? | ${last}` : last;
}

/** Digits that are significant: more are no number that a program could hold. */
const digitsMax = 15;

/** Whole numbers from 0 on, without zeros at the start. */
function magnitudes(low: number, high: number): string {
  const parts: string[] = [];
  const top = Math.min(high, 10 ** digitsMax - 1);
  for (let digits = String(low).length; digits <= String(top).length; digits++) {
    const least = digits === 1 ? 0 : 10 ** (digits - 1);
    const from = Math.max(low, least);
    const to = Math.min(top, 10 ** digits - 1);
    if (from <= to) parts.push(sameLength(String(from), String(to)));
  }
  return parts.join(" | ");
}

/** Texts of digits from one to another of the same length. */
function sameLength(from: string, to: string): string {
  if (from === "") return '""';
  if (/^0*$/.test(from) && /^9*$/.test(to)) return `[0-9]{${from.length}}`;
  const [a = "", b = ""] = [from[0], to[0]];
  const rest = from.length - 1;
  if (a === b) return rest === 0 ? `"${a}"` : `"${a}" (${sameLength(from.slice(1), to.slice(1))})`;
  if (rest === 0) return `[${a}-${b}]`;
  const parts = [`"${a}" (${sameLength(from.slice(1), "9".repeat(rest))})`];
  const [low, high] = [Number(a) + 1, Number(b) - 1];
  if (low <= high) parts.push(`[${low}-${high}] [0-9]{${rest}}`);
  parts.push(`"${b}" (${sameLength("0".repeat(rest), to.slice(1))})`);
  return parts.join(" | ");
}
