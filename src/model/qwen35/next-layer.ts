/**
 * The block behind the model's own that guesses further tokens (multi-token prediction, DeepSeek-AI
 * 2024, arXiv 2412.19437 §2.2): it reads what the head reads of a row, and the token behind that.
 */
import type { Matrix, Vector } from "../../tensor/tensor.ts";
import type { Weights } from "../weights.ts";
import { declareLayer, type Layer } from "./layer.ts";
import type { Shape } from "./shape.ts";

export interface NextLayer {
  readonly embedding: Matrix;
  readonly tokenNorm: Vector;
  readonly hiddenNorm: Vector;
  /** [width, token | hidden]: what the block begins with. */
  readonly join: Matrix;
  readonly layer: Layer;
  readonly norm: Vector;
  readonly head: Matrix;
}

/** What it shares with the model unless it brings its own. */
export type SharedWeights = Pick<NextLayer, "embedding" | "norm" | "head">;

export function declareNextLayer(
  weights: Weights,
  shape: Shape,
  index: number,
  cacheIndex: number,
  shared: SharedWeights,
): NextLayer {
  const { width } = shape;
  const name = (part: string) => `blk.${index}.nextn.${part}.weight`;
  const matrix = (part: string, usual: Matrix) =>
    weights.has(name(part)) ? weights.matrix(name(part), usual.rows, width) : usual;
  return {
    embedding: matrix("embed_tokens", shared.embedding),
    tokenNorm: weights.vector(name("enorm"), width),
    hiddenNorm: weights.vector(name("hnorm"), width),
    join: weights.matrix(name("eh_proj"), width, 2 * width),
    layer: declareLayer(weights, shape, index, cacheIndex),
    norm: weights.has(name("shared_head_norm"))
      ? weights.vector(name("shared_head_norm"), width)
      : shared.norm,
    head: matrix("shared_head_head", shared.head),
  };
}
