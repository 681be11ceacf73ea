/**
 * Which layers go to which device: neighbours stay together, and all devices are filled alike.
 * Numbers in, numbers out.
 */
import { invariant } from "../errors.ts";
import type { LayerRange } from "../model/model.ts";

export interface LayerSize {
  /** Of the first with the embedding, of the last with the head. */
  readonly weightBytes: number;
  /** Of all sequences together. */
  readonly stateBytes: number;
  readonly cacheBytesPerToken: number;
}

/** What may be taken of a device, and what it needs beside its layers. */
export interface DeviceRoom {
  readonly freeBytes: number;
  readonly fixedBytes: number;
}

export interface SplitProblem {
  readonly layers: readonly LayerSize[];
  /** Layers in front of which there may be a cut, ascending; one fewer than devices at least. */
  readonly cuts: readonly number[];
  readonly devices: readonly DeviceRoom[];
}

/**
 * One range for each device, so that the cache may have `most` tokens or, if they do not fit, as
 * many as do; if not even `least` do, as for these.
 */
export function splitLayers(
  problem: SplitProblem,
  { least, most, step }: { least: number; most: number; step: number },
): readonly LayerRange[] {
  let [best, low, high] = [splitFor(problem, most), 0, Math.ceil((most - least) / step)];
  if (best.fill <= 1) return best.ranges;
  best = splitFor(problem, least);
  // `least` and `low` steps fit, and `high` do not.
  while (best.fill <= 1 && high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const split = splitFor(problem, least + middle * step);
    if (split.fill > 1) high = middle;
    else [low, best] = [middle, split];
  }
  return best.ranges;
}

/**
 * The device that has no room even for the least that it could get, with a cache of so many tokens;
 * undefined if all have.
 */
export function deviceInVain(
  { layers, cuts, devices }: SplitProblem,
  tokens: number,
): { index: number; leastBytes: number } | undefined {
  const ends = [0, ...cuts, layers.length];
  const parts = ends.slice(1).map((end, i) => bytesOf(layers.slice(ends[i], end), tokens));
  for (const [index, { freeBytes, fixedBytes }] of devices.entries()) {
    const isLast = index === devices.length - 1;
    const possible = index === 0 ? parts.slice(0, 1) : parts.slice(isLast ? -1 : 1);
    const leastBytes = fixedBytes + Math.min(...possible);
    if (leastBytes > freeBytes) return { index, leastBytes };
  }
  return undefined;
}

interface Split {
  readonly ranges: readonly LayerRange[];
  /** How full the fullest device is; more than 1 does not fit. */
  readonly fill: number;
}

/** The split whose fullest device is emptiest. */
function splitFor({ layers, cuts, devices }: SplitProblem, tokens: number): Split {
  const ends = [...cuts, layers.length];
  // By end: the best split of the layers in front of it over the devices so far.
  let best = new Map<number, Split>([[0, { ranges: [], fill: 0 }]]);
  for (const { freeBytes, fixedBytes } of devices) {
    const next = new Map<number, Split>();
    for (const [first, { ranges, fill }] of best) {
      for (const end of ends.filter((other) => other > first)) {
        const bytes = fixedBytes + bytesOf(layers.slice(first, end), tokens);
        const fullest = Math.max(fill, bytes / Math.max(freeBytes, 1));
        if (fullest >= (next.get(end)?.fill ?? Number.POSITIVE_INFINITY)) continue;
        next.set(end, { ranges: [...ranges, { first, end }], fill: fullest });
      }
    }
    best = next;
  }
  const split = best.get(layers.length);
  invariant(split !== undefined, `${layers.length} layers over ${devices.length} devices`);
  return split;
}

function bytesOf(layers: readonly LayerSize[], tokens: number): number {
  return layers.reduce(
    (sum, { weightBytes, stateBytes, cacheBytesPerToken }) =>
      sum + weightBytes + stateBytes + cacheBytesPerToken * tokens,
    0,
  );
}
