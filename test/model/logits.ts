/** How far apart logits are, in standard deviations of those that are expected. */

export function deviationOf(values: ArrayLike<number>): number {
  const list = Array.from(values);
  const mean = list.reduce((sum, value) => sum + value, 0) / list.length;
  return Math.sqrt(list.reduce((sum, value) => sum + (value - mean) ** 2, 0) / list.length);
}

/** The largest difference; infinite if something is no number, or missing. */
export function largestDifference(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  deviation = deviationOf(expected),
): number {
  if (actual.length !== expected.length) return Number.POSITIVE_INFINITY;
  const differences = Array.from(expected, (want, i) => Math.abs((actual[i] ?? Number.NaN) - want));
  const worst = Math.max(...differences);
  return Number.isNaN(worst) ? Number.POSITIVE_INFINITY : worst / deviation;
}
