/**
 * Gemma 4 (Google 2026): Gemma 3 with values that are normalized, scores that are not scaled, and
 * other heads in layers with a window than in those without. In the small sizes the last layers
 * read the cache of earlier ones, and every layer adds an embedding of its own, as in Gemma 3n. One
 * size has a mixture of experts beside each feed-forward block.
 */
import type { GgufFile } from "../gguf/file.ts";
import { embed } from "../kernels/embed.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { matmul } from "../kernels/matmul.ts";
import { rmsNorm } from "../kernels/rms-norm.ts";
import { glu } from "../kernels/glu.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { subslice } from "../vulkan/buffer.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, type DecoderLayer, type DecoderShape } from "./decoder.ts";
import { declareFeedForward, feedForward } from "./feed-forward.ts";
import { declareExpertBlock, expertBlock, type ExpertBlock } from "./gemma4/expert-block.ts";
import { cacheOf, largest, readGemma4, type Gemma4Config } from "./gemma4/shape.ts";
import { layersOf, scratchSlice, type Pass } from "./model.ts";
import { addBranch } from "./residual.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";
import { tensorValues, type Weights } from "./weights.ts";

interface Layer extends DecoderLayer {
  readonly shape: DecoderShape;
  readonly window: number | undefined;
  /** Which cache it writes, or reads only. */
  readonly cache: number;
  /** On the residual stream behind the layer. */
  readonly factor: number;
  readonly ownEmbedding: OwnEmbedding | undefined;
  /** Beside the feed-forward block. */
  readonly experts: ExpertBlock | undefined;
}

/** What a layer makes of its part of the per-layer embedding. */
interface OwnEmbedding {
  readonly gate: Matrix;
  readonly output: Matrix;
  readonly postNorm: Vector;
}

/** An embedding of each token for each layer: [layers, width]. */
interface LayerEmbedding {
  readonly width: number;
  readonly table: Matrix;
  readonly projection: Matrix;
  readonly norm: Vector;
}

const tableName = "per_layer_token_embd.weight";
const projectionName = "per_layer_model_proj.weight";
const normName = "per_layer_proj_norm.weight";

export class Gemma4 extends Decoder {
  readonly #layers: readonly Layer[];
  readonly #logitCap: number | undefined;
  readonly #layerEmbedding: LayerEmbedding | undefined;

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "gemma4");
    const config = readGemma4(reader);
    const { layers, cacheCount, embeddingWidth, experts } = config;
    const shapes = layers.map(({ shape }) => shape);
    const far = layers.find(({ window }) => window === undefined)?.shape.headWidth ?? 0;
    const near = layers.find(({ window }) => window !== undefined)?.shape.headWidth ?? 0;
    const divisors = tensorValues(file, "rope_freqs.weight");
    const ropes = {
      ...(far > 0 && { far: readRope(reader, { headWidth: far, pairs: "halves", divisors }) }),
      ...(near > 0 && {
        near: readRope(reader, {
          headWidth: near,
          pairs: "halves",
          base: reader.positive("rope.freq_base_swa", 10_000),
          rotary: reader.count("rope.dimension_count_swa", near, near),
          stretched: false,
        }),
      }),
    };
    const own = embeddingWidth * layers.length;
    super(reader, {
      shape: largest(shapes, embeddingWidth),
      attentions: shapes,
      mixture: experts,
      cache: { layers: shapes.slice(0, cacheCount) },
      layerMemory: layers.map(({ window }, i) => ({
        cache: cacheOf(i, window, cacheCount),
        states: [],
      })),
      ropes,
      postNorms: true,
      scratch: {
        ...(own > 0 && { embeddings: own, projections: own }),
        ...(experts && { mixed: reader.common().width }),
      },
      ...(own > 0 && {
        early: { activations: ["embeddings"], weights: [tableName, projectionName, normName] },
      }),
    });
    this.#logitCap = reader.optionalPositive("final_logit_softcapping");
    this.#layerEmbedding =
      own === 0 ? undefined : declareEmbedding(this.weights, this.config, embeddingWidth);
    this.#layers = this.layers((prefix, i) => this.#declare(file, prefix, config, i));
  }

  override get stepBytes(): number {
    return super.stepBytes - this.weights.byteSizeOf(tableName);
  }

  record(context: KernelContext, pass: Pass): void {
    this.embed(context, pass, Math.sqrt(this.config.width));
    const own = this.#layerEmbedding;
    if (own && pass.layers.first === 0) this.#embedLayers(context, pass, own);
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      const { shape, window, cache, ownEmbedding, experts } = layer;
      const factor = ownEmbedding === undefined ? layer.factor : 1;
      const rope = window === undefined ? "far" : "near";
      this.attend(context, pass, { layer: layer.attention, shape, cache, rope, window });
      const use = { layer: layer.feedForward, epsilon: shape.epsilon, factor };
      if (experts) expertBlock(context, pass, { ...use, experts });
      else feedForward(context, pass, { ...use, gateFunction: "gelu" });
      if (ownEmbedding) this.#addEmbedding(context, pass, i, ownEmbedding, layer.factor);
    }
    this.readOut(context, pass, { cap: this.#logitCap });
  }

  /** embeddings = (√width · Table[token] + norm(Projection · x / √model width)) / √2 */
  #embedLayers(context: KernelContext, pass: Pass, own: LayerEmbedding): void {
    const { step, rowCapacity, deterministic } = pass;
    const { width, table, projection: w, norm: weight } = own;
    const rows = { step, rowCapacity };
    const embeddings = scratchSlice(pass, "embeddings");
    const projections = scratchSlice(pass, "projections");
    const x = scratchSlice(pass, "x");
    const { latest } = pass;
    embed(context, { table, x: embeddings, latest, scale: Math.sqrt(width), ...rows });
    matmul(context, { w, x, activation: "float", y: projections, deterministic, ...rows });
    rmsNorm(context, {
      x: projections,
      weight,
      y: embeddings,
      // norm(x / √n) with ε is norm(x) with n · ε.
      epsilon: this.shape.epsilon * this.config.width,
      groups: this.config.layerCount,
      accumulate: true,
      factor: Math.SQRT1_2,
      ...rows,
    });
  }

  /** x = factor · (x + norm(Output · (gelu(Gate · x) ⊙ the layer's embedding))) */
  #addEmbedding(
    context: KernelContext,
    pass: Pass,
    index: number,
    { gate: w, output, postNorm }: OwnEmbedding,
    factor: number,
  ): void {
    const { step, rowCapacity, deterministic } = pass;
    const rows = { step, rowCapacity };
    const [x, y] = [scratchSlice(pass, "x"), scratchSlice(pass, "gated")];
    const embeddings = scratchSlice(pass, "embeddings");
    const [width, upStride] = [w.rows, w.rows * this.config.layerCount];
    const offset = index * width * 4;
    const up = subslice(embeddings, offset, embeddings.byteSize - offset);
    matmul(context, { w, x, activation: "float", y, deterministic, ...rows });
    glu(context, { gate: y, up, y, width, upStride, activation: "gelu", ...rows });
    const { epsilon } = this.shape;
    addBranch(context, pass, {
      w: output,
      from: y,
      activation: "float",
      postNorm,
      epsilon,
      factor,
    });
  }

  #declare(file: GgufFile, prefix: string, config: Gemma4Config, index: number): Layer {
    const { layers, cacheCount, embeddingWidth, experts } = config;
    const { shape, window } = layers[index] ?? { shape: this.shape, window: undefined };
    const { weights } = this;
    const { width } = this.config;
    const borrows = index >= cacheCount;
    const matrix = (name: string, rows: number, columns: number) =>
      weights.matrix(`${prefix}.${name}.weight`, rows, columns);
    return {
      shape,
      window,
      cache: cacheOf(index, window, cacheCount),
      attention: declareSelfAttention(weights, prefix, width, shape, {
        headNorms: true,
        postNorm: true,
        borrows,
        keysAsValues: !weights.has(`${prefix}.attn_v.weight`),
      }),
      feedForward: declareFeedForward(weights, prefix, width, shape.feedForward, {
        postNorm: true,
      }),
      experts: experts && declareExpertBlock(weights, prefix, width, experts),
      factor: tensorValues(file, `${prefix}.layer_output_scale.weight`)?.[0] ?? 1,
      ownEmbedding:
        embeddingWidth === 0
          ? undefined
          : {
              gate: matrix("inp_gate", embeddingWidth, width),
              output: matrix("proj", width, embeddingWidth),
              postNorm: weights.vector(`${prefix}.post_norm.weight`, width),
            },
    };
  }
}

function declareEmbedding(
  weights: Weights,
  model: { width: number; layerCount: number; vocabularySize: number },
  width: number,
): LayerEmbedding {
  const total = width * model.layerCount;
  return {
    width,
    table: weights.matrix(tableName, model.vocabularySize, total),
    projection: weights.matrix(projectionName, total, model.width),
    norm: weights.vector(normName, width),
  };
}
