/**
 * A part of a model: neighbouring layers, with the weights, caches and states that lie where they
 * are computed. One part is the whole model unless it is spread over devices.
 */
import type { LayerRange, Model } from "./model.ts";
import type { DeclaredWeight } from "./weights.ts";

export interface ModelPart {
  readonly layers: LayerRange;
  readonly weights: readonly DeclaredWeight[];
  /** Numbers of the caches. */
  readonly caches: readonly number[];
  /** Bytes a sequence, by name. */
  readonly states: Readonly<Record<string, number>>;
  /** The head is behind it. */
  readonly isLast: boolean;
}

/** The part with these layers: with the first goes the embedding, and with the last the head. */
export function partOf(model: Model, layers: LayerRange): ModelPart {
  const { first, end } = layers;
  const isLast = end === model.config.layerCount;
  const { embedding, head } = model.ends;
  const ends = new Set([...(first === 0 ? embedding : []), ...(isLast ? head : [])]);
  const memory = model.layerMemory.slice(first, end);
  // Layers behind the last one, for further tokens, are nobody else's.
  const others = new Set(model.layerMemory.map(({ cache }) => cache));
  const further = [...model.cache.layers.keys()].filter((cache) => isLast && !others.has(cache));
  const states = new Set(memory.flatMap((layer) => layer.states));
  return {
    layers,
    isLast,
    weights: model.weights.declared().filter(({ tensor: { name } }) => {
      const layer = layerOf(name);
      return layer === undefined ? ends.has(name) : first <= layer && (isLast || layer < end);
    }),
    caches: [...new Set(memory.flatMap(({ cache }) => cache ?? [])), ...further],
    states: Object.fromEntries(Object.entries(model.states).filter(([name]) => states.has(name))),
  };
}

/** The layers in front of which a model can be cut: nobody behind reads a cache of those before. */
export function cutsOf({ layerMemory }: Model): number[] {
  const lastUsers = new Map(layerMemory.map(({ cache }, i) => [cache, i]));
  let inUseUntil = 0;
  return layerMemory.flatMap(({ cache }, i) => {
    const isCut = i > inUseUntil;
    if (cache !== undefined) inUseUntil = Math.max(inUseUntil, lastUsers.get(cache) ?? i);
    return isCut ? [i] : [];
  });
}

/** Of a weight, by its name: "blk.3.attn_q.weight" is one of layer 3. */
function layerOf(name: string): number | undefined {
  const [, index] = /^blk\.(\d+)\./.exec(name) ?? [];
  return index === undefined ? undefined : Number(index);
}
