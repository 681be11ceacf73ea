/** Who wins a race of layouts: numbers in, numbers out. */

/** What a challenger must gain in every round, so that noise flips no choice. */
const gainLeast = 0.03;
/** Rounding moves results by far less, and a fault of a driver by far more. */
const deviationMost = 0.05;

/** Whether a challenger's time is worth a change. */
export function beats(challenger: number, usual: number): boolean {
  return challenger <= usual * (1 - gainLeast);
}

/**
 * Of times in rounds, each with a time for every candidate, the usual one first: the index of the
 * fastest among those that beat the usual one in every round; 0 if there is none, or but one round.
 */
export function winnerOf(rounds: readonly (readonly number[])[]): number {
  const count = rounds.length < 2 ? 0 : (rounds[0]?.length ?? 0);
  const total = (index: number) => rounds.reduce((sum, times) => sum + timeOf(times, index), 0);
  let winner = 0;
  for (let index = 1; index < count; index++) {
    const isFaster = rounds.every((times) => beats(timeOf(times, index), timeOf(times, 0)));
    if (isFaster && total(index) < total(winner)) winner = index;
  }
  return winner;
}

/** One that was not measured has lost. */
function timeOf(times: readonly number[], index: number): number {
  return times[index] ?? Number.POSITIVE_INFINITY;
}

/** Whether two layouts gave the same results but for rounding. */
export function areAlike(expected: Float32Array, actual: Float32Array): boolean {
  const squares = expected.reduce((sum, value) => sum + value * value, 0);
  const scale = Math.sqrt(squares / expected.length);
  return expected.every((value, i) => {
    return Math.abs((actual[i] ?? Number.NaN) - value) <= deviationMost * scale;
  });
}
