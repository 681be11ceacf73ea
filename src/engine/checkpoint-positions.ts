/**
 * Where the state of recurrent layers is worth keeping. Each place ends a chunk of the prompt, and
 * slots are few: so not everywhere.
 */
import { blockTokens } from "../kernels/step.ts";

/** Checkpoints nearer to each other than this save too little. */
const checkpointGap = 4 * blockTokens;

/**
 * Positions in a prompt, ascending, each the end of a full block. First come those where another
 * text is likely to part from this one: behind the last two messages and the first, and at the end;
 * then every `interval` tokens.
 */
export function checkpointPositions(
  promptLength: number,
  boundaries: readonly number[],
  interval: number,
): number[] {
  const inside = boundaries.filter((position) => position < promptLength);
  const likely = [...inside.slice(-2).reverse(), promptLength - 1, ...inside.slice(0, 1)];
  const chosen: number[] = [];
  const choose = (position: number) => {
    const end = position - (position % blockTokens);
    const near = [0, ...chosen].some((other) => Math.abs(other - end) < checkpointGap);
    if (!near) chosen.push(end);
  };
  likely.forEach(choose);
  for (let position = interval; position < promptLength; position += interval) choose(position);
  return chosen.toSorted((a, b) => a - b);
}

/** The first checkpoint behind `position`, in the prompt or in what follows it. */
export function nextCheckpoint(
  positions: readonly number[],
  promptLength: number,
  interval: number,
  position: number,
): number {
  const inPrompt = positions.find((candidate) => candidate > position);
  if (inPrompt !== undefined) return inPrompt;
  const from = Math.max(position + 1, promptLength);
  return Math.ceil(from / interval) * interval;
}
