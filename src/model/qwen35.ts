/**
 * Qwen3-Next and its heirs, Qwen3.5 and 3.6 (Qwen team 2025–26), dense and as mixtures of experts:
 * three of four blocks are gated delta nets (Yang et al. 2024, arXiv 2412.06464), which carry a
 * state of fixed size, and one is attention with normalized queries and keys, a rotation of a part
 * of each head, and a gate on its output.
 */
import { invariant } from "../errors.ts";
import type { GgufFile } from "../gguf/file.ts";
import { attentionFloats, type AttentionShape } from "../kernels/attention.ts";
import { convolvedDelta } from "../kernels/convolved-delta.ts";
import { embed } from "../kernels/embed.ts";
import { experts, type ExpertWeights } from "../kernels/experts.ts";
import { gatedDeltaStateBytes } from "../kernels/gated-delta.ts";
import { gatedHeadsProduct } from "../kernels/gated-heads-product.ts";
import { gatedProduct, gatedProductFloats } from "../kernels/gated-product.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { matmul } from "../kernels/matmul.ts";
import { normedProducts, normedProductsFloats } from "../kernels/normed-products.ts";
import { rotaryAttention } from "../kernels/rotary-attention.ts";
import { rmsNorm } from "../kernels/rms-norm.ts";
import { rotaryTurns } from "../kernels/rope-cache.ts";
import { shortConvStateBytes } from "../kernels/short-conv.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { subslice } from "../vulkan/buffer.ts";
import { ConfigReader, type ModelConfig } from "./config.ts";
import { mixtureFloats } from "./mixture.ts";
import {
  cachesOf,
  counterOf,
  evenCache,
  layersOf,
  scratchOf,
  stateOf,
  tableOf,
  type CacheShape,
  type LayerMemory,
  type Model,
  type ModelOptions,
  type Pass,
  type Predictor,
  type PredictorMemory,
} from "./model.ts";
import {
  declareLayer,
  type AttentionLayer,
  type DeltaLayer,
  type FeedForward,
  type Layer,
} from "./qwen35/layer.ts";
import { hiddenStates } from "./output-head.ts";
import { declareNextLayer, type NextLayer } from "./qwen35/next-layer.ts";
import { readLayerKinds, readShape, type Shape } from "./qwen35/shape.ts";
import { readRope, type Rope } from "./rope.ts";
import { Weights } from "./weights.ts";

/** Floats a row of each activation. */
type Scratch =
  | "x"
  | "query"
  | "key"
  | "value"
  | "attended"
  | "mixed"
  | "convolved"
  | "gate"
  | "beta"
  | "alpha"
  | "terms"
  | "recalled"
  | "gated"
  | "joined";

export class Qwen35 implements Model {
  readonly config: ModelConfig;
  readonly weights: Weights;
  readonly cache: CacheShape;
  readonly states: Readonly<Record<string, number>>;
  readonly layerMemory: readonly LayerMemory[];
  readonly ends: Model["ends"];
  readonly carried: readonly string[] = ["x"];
  readonly attentions: readonly AttentionShape[];
  readonly stepBytes: number;
  readonly scratch: Readonly<Record<Scratch, number>>;
  readonly workspace: number;
  readonly tables: Readonly<Record<"frequencies", Uint8Array>>;
  readonly predictor: Predictor | undefined;
  readonly #shape: Shape;
  readonly #rope: Rope;
  readonly #embedding: Matrix;
  readonly #layers: readonly Layer[];
  readonly #outputNorm: Vector;
  readonly #output: Matrix;

  constructor(file: GgufFile, { predicts = false }: ModelOptions = {}) {
    const reader = new ConfigReader(file, file.metadata.string("general.architecture") ?? "qwen35");
    const weights = new Weights(file);
    this.weights = weights;
    const config = reader.common();
    const { width, vocabularySize } = config;
    const recurrent = readLayerKinds(reader, config.layerCount);
    if (weights.has("blk.0.ssm_in.weight")) {
      throw reader.unsupported("an early conversion that mixes attn_qkv and attn_gate in ssm_in");
    }
    this.config = { ...config, layerCount: recurrent.length };
    this.#shape = readShape(reader, width);
    const { heads, kvHeads, headWidth, feedForward } = this.#shape;
    // The sections of its rotary part tell where in a picture a token stands; positions in a text
    // are the same in all of them, and then the sections make no difference.
    this.#rope = readRope(reader, { headWidth, pairs: "halves" });

    this.#embedding = weights.matrix("token_embd.weight", vocabularySize, width);
    let cacheCount = 0;
    this.#layers = recurrent.map((isRecurrent, i) =>
      declareLayer(weights, this.#shape, i, isRecurrent ? undefined : cacheCount++),
    );
    this.#outputNorm = weights.vector("output_norm.weight", width);
    // Small models share the table of the embedding with the head.
    const head = weights.has("output.weight") ? "output.weight" : "token_embd.weight";
    this.#output = weights.matrix(head, vocabularySize, width);

    const { layerCount } = this.config;
    if (predicts && config.layerCount > layerCount) {
      const shared = { embedding: this.#embedding, norm: this.#outputNorm, head: this.#output };
      const next = declareNextLayer(weights, this.#shape, layerCount, cacheCount++, shared);
      this.predictor = {
        record: (context, pass, hidden) => this.#guess(context, pass, next, hidden),
      };
    }
    const expertsUsed = typeof feedForward === "number" ? 1 : feedForward.routing.used;
    // Of an embedding table that is not the head as well, a step reads one row.
    this.stepBytes =
      weights.activeByteSize(expertsUsed) -
      (head === "output.weight" ? weights.byteSizeOf("token_embd.weight") : 0);
    this.ends = { embedding: [this.#embedding.name], head: [this.#outputNorm.name, head] };
    this.layerMemory = this.#layers.map(({ mixer }) =>
      mixer.kind === "attention"
        ? { cache: mixer.cacheIndex, states: [] }
        : { cache: undefined, states: [mixer.past, mixer.memory] },
    );
    this.cache = evenCache(cacheCount, { kvHeads, headWidth });
    this.states = statesOf(this.#layers, this.#shape);
    const attentionShape = { heads, kvHeads, headWidth };
    this.attentions = [attentionShape];
    const joined = this.predictor === undefined ? 0 : 2 * width;
    this.scratch = { ...scratchFloats(this.#shape), joined };
    this.workspace = Math.max(
      width,
      normedProductsFloats(width),
      attentionFloats(attentionShape),
      typeof feedForward === "number"
        ? gatedProductFloats(width, feedForward)
        : mixtureFloats(width, feedForward),
    );
    this.tables = { frequencies: rotaryTurns(this.#rope.radians) };
  }

  record(context: KernelContext, pass: Pass): void {
    const { layers, step, rowCapacity } = pass;
    const { epsilon } = this.#shape;
    const s = scratchOf(pass, this.scratch);
    if (layers.first === 0) {
      embed(context, { table: this.#embedding, x: s.x, step, latest: pass.latest, rowCapacity });
    }
    for (const [, layer] of layersOf(pass, this.#layers)) {
      const { mixerNorm, mixer, feedForwardNorm, feedForward } = layer;
      if (mixer.kind === "attention") this.#attend(context, pass, mixerNorm, mixer);
      else this.#recall(context, pass, mixerNorm, mixer);
      this.#feedForward(context, pass, feedForwardNorm, feedForward);
    }
    if (layers.end < this.#layers.length) return;
    hiddenStates(context, pass, { x: s.x, norm: this.#outputNorm, epsilon });
    this.#readOut(context, pass, this.#outputNorm, this.#output);
  }

  /** The first of the layers behind: its rows are tokens, and `source` the rows before these. */
  #guess(context: KernelContext, pass: Pass, next: NextLayer, memory: PredictorMemory): void {
    const { step, rowCapacity, outputCapacity, deterministic } = pass;
    const { embedding: table, tokenNorm, hiddenNorm, join, layer, norm, head } = next;
    const { epsilon } = this.#shape;
    const s = scratchOf(pass, this.scratch);
    const rows = { step, rowCapacity };
    embed(context, { table, x: s.x, latest: pass.latest, ...rows });
    const { length: width } = tokenNorm;
    const joined = { epsilon, stride: 2 * width, ...rows };
    const behind = subslice(s.joined, width * 4, s.joined.byteSize - width * 4);
    rmsNorm(context, { x: s.x, weight: tokenNorm, y: s.joined, ...joined });
    rmsNorm(context, { x: memory.source, weight: hiddenNorm, y: behind, ...joined });
    const product = { w: join, x: s.joined, activation: "float", consumes: true } as const;
    matmul(context, { ...product, y: s.x, deterministic, ...rows });
    const { mixer } = layer;
    invariant(mixer.kind === "attention", "a block for further tokens that is recurrent");
    this.#attend(context, pass, layer.mixerNorm, mixer);
    this.#feedForward(context, pass, layer.feedForwardNorm, layer.feedForward);
    if (outputCapacity === 0) return;
    const wanted = { x: s.x, weight: norm, epsilon, step, rowCapacity: outputCapacity };
    rmsNorm(context, { ...wanted, y: memory.target, gather: true });
    this.#readOut(context, pass, norm, head);
  }

  /** logits = Output · norm(x), of the rows whose logits are wanted. */
  #readOut(context: KernelContext, pass: Pass, norm: Vector, output: Matrix): void {
    const { step, outputCapacity, logits, workspace, deterministic } = pass;
    if (outputCapacity === 0) return;
    const { epsilon } = this.#shape;
    normedProducts(context, {
      ...{ x: scratchOf(pass, this.scratch).x, norm, epsilon },
      ...{ products: [{ w: output, y: logits }], outputs: true, workspace, step },
      ...{ rowCapacity: outputCapacity, deterministic },
    });
  }

  /** x += Output · (sigmoid(gate) ⊙ Attention(RoPE(norm(query)), RoPE(norm(key)), value)) */
  #attend(context: KernelContext, pass: Pass, norm: Vector, layer: AttentionLayer): void {
    const { step, rowCapacity, workspace, deterministic } = pass;
    const { heads, kvHeads, headWidth, epsilon, scale } = this.#shape;
    const { rotary, pairs, magnitude } = this.#rope;
    const s = scratchOf(pass, this.scratch);
    const rows = { step, rowCapacity };
    normedProducts(context, {
      x: s.x,
      norm,
      epsilon,
      workspace,
      deterministic,
      ...rows,
      products: [
        { w: layer.query, y: s.query },
        { w: layer.key, y: s.key },
        { w: layer.value, y: s.value },
      ],
    });
    rotaryAttention(context, {
      query: s.query,
      gated: true,
      rope: {
        key: s.key,
        value: s.value,
        queryNorm: layer.queryNorm,
        keyNorm: layer.keyNorm,
        epsilon,
        frequencies: tableOf(pass, "frequencies"),
        rotary,
        pairs,
        magnitude,
      },
      ...cachesOf(pass, layer.cacheIndex),
      result: s.attended,
      reader: layer.output,
      workspace,
      deterministic,
      parts: pass.attentionParts,
      heads,
      kvHeads,
      headWidth,
      scale,
      ...rows,
    });
    const product = { w: layer.output, x: s.attended, y: s.x, accumulate: true };
    matmul(context, { ...product, deterministic, ...rows });
  }

  /** x += Output · (norm(o) ⊙ silu(gate)), where o is what the delta rule recalls for each row. */
  #recall(context: KernelContext, pass: Pass, norm: Vector, layer: DeltaLayer): void {
    const { step, rowCapacity, sequenceCapacity, workspace, deterministic } = pass;
    const { epsilon, delta } = this.#shape;
    const { keyHeads, valueHeads, headWidth, grouped } = delta;
    const s = scratchOf(pass, this.scratch);
    const rows = { step, rowCapacity };
    normedProducts(context, {
      x: s.x,
      norm,
      epsilon,
      workspace,
      deterministic,
      ...rows,
      products: [
        { w: layer.mixed, y: s.mixed },
        { w: layer.gate, y: s.gate },
        { w: layer.beta, y: s.beta },
        ...(layer.alpha === undefined ? [] : [{ w: layer.alpha, y: s.alpha }]),
      ],
    });
    convolvedDelta(context, {
      mixed: s.mixed,
      convolution: {
        weight: layer.convolution,
        state: stateOf(pass, layer.past),
        result: s.convolved,
      },
      terms: s.terms,
      beta: s.beta,
      alpha: layer.alpha === undefined ? s.beta : s.alpha,
      decay: layer.decay,
      offset: layer.offset,
      state: stateOf(pass, layer.memory),
      result: s.recalled,
      heads: valueHeads,
      keyHeads,
      width: headWidth,
      epsilon,
      grouped,
      sequenceCapacity,
      deterministic,
      ...rows,
    });
    gatedHeadsProduct(context, {
      x: s.recalled,
      heads: valueHeads,
      weight: layer.norm,
      epsilon,
      gate: s.gate,
      w: layer.output,
      y: s.x,
      accumulate: true,
      deterministic,
      ...rows,
    });
  }

  /** x += Down · (silu(Gate · h) ⊙ (Up · h)) with h = norm(x), once or for chosen experts. */
  #feedForward(
    context: KernelContext,
    pass: Pass,
    norm: Vector,
    layer: FeedForward | ExpertWeights,
  ): void {
    const { step, rowCapacity, workspace, deterministic } = pass;
    const { epsilon } = this.#shape;
    const s = scratchOf(pass, this.scratch);
    const rows = { step, rowCapacity, deterministic };
    if ("routing" in layer) {
      const counter = counterOf(pass);
      experts(context, { x: s.x, norm, epsilon, weights: layer, workspace, counter, ...rows });
      return;
    }
    const { gate, up, down } = layer;
    const product = { x: s.x, norm, epsilon, gate, up, y: s.gated, reader: down };
    gatedProduct(context, { ...product, workspace, ...rows });
    matmul(context, { w: down, x: s.gated, y: s.x, accumulate: true, ...rows });
  }
}

function scratchFloats(shape: Shape): Readonly<Record<Exclude<Scratch, "joined">, number>> {
  const { width, heads, kvHeads, headWidth, delta, feedForward } = shape;
  const { channels, valueHeads, valueWidth } = delta;
  return {
    x: width,
    query: 2 * heads * headWidth,
    key: kvHeads * headWidth,
    value: kvHeads * headWidth,
    attended: heads * headWidth,
    mixed: channels,
    convolved: channels,
    gate: valueWidth,
    beta: delta.grouped ? 2 * valueHeads : valueHeads,
    alpha: valueHeads,
    terms: 4 * valueHeads,
    recalled: valueWidth,
    gated: typeof feedForward === "number" ? feedForward : 0,
  };
}

/** What each delta net carries from row to row. */
function statesOf(layers: readonly Layer[], shape: Shape): Record<string, number> {
  const { channels, taps, valueHeads, headWidth } = shape.delta;
  return Object.fromEntries(
    layers.flatMap(({ mixer }) =>
      mixer.kind === "attention"
        ? []
        : [
            [mixer.past, shortConvStateBytes(channels, taps)],
            [mixer.memory, gatedDeltaStateBytes(valueHeads, headWidth)],
          ],
    ),
  );
}
