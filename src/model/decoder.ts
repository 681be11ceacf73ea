/**
 * What decoders have in common: an embedding, layers that each keep keys and values, and a head.
 * What happens between is told by the file of each architecture.
 */
import { invariant } from "../errors.ts";
import { attentionFloats, type AttentionShape as HeadShape } from "../kernels/attention.ts";
import { embed } from "../kernels/embed.ts";
import { gatedProductFloats } from "../kernels/gated-product.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { rotaryTurns, type Rotation } from "../kernels/rope-cache.ts";
import type { Matrix } from "../tensor/tensor.ts";
import type { ConfigReader, ModelConfig } from "./config.ts";
import type { FeedForward } from "./feed-forward.ts";
import { mixtureFloats, type Mixture, type MixtureShape } from "./mixture.ts";
import {
  evenCache,
  scratchSlice,
  type CacheShape,
  type LayerMemory,
  type Model,
  type Pass,
} from "./model.ts";
import { declareOutputHead, outputHead, type OutputHeadUse } from "./output-head.ts";
import { rotationOf, type Rope } from "./rope.ts";
import {
  selfAttention,
  type AttentionShape,
  type AttentionUse,
  type SelfAttention,
} from "./self-attention.ts";
import { Weights } from "./weights.ts";

export interface DecoderShape extends AttentionShape {
  readonly feedForward: number;
}

export interface DecoderOptions {
  /** Of all layers, or the largest of each. */
  readonly shape: DecoderShape;
  /** Of the layers, if they differ. */
  readonly attentions?: readonly HeadShape[];
  /** If the feed-forward blocks are mixtures of experts. */
  readonly mixture?: MixtureShape | undefined;
  /** By layer, if not all keep the same. */
  readonly cache?: CacheShape;
  /** By layer, if not each has the cache of its number and nothing else. */
  readonly layerMemory?: readonly LayerMemory[];
  /** By the names that layers use. */
  readonly ropes: Readonly<Record<string, Rope>>;
  /** Blocks end in a norm, which needs room for what it normalizes. */
  readonly postNorms?: boolean;
  /** Bytes a sequence of what layers without a cache carry from row to row, by name. */
  readonly states?: Readonly<Record<string, number>>;
  /** The tensor of the last norm, where it is not the usual one. */
  readonly outputNorm?: string | undefined;
  /** More activations. */
  readonly scratch?: Readonly<Record<string, number>>;
  /** What is made in front of the first layer for later ones: activations, and their weights. */
  readonly early?: { readonly activations: readonly string[]; readonly weights: readonly string[] };
}

/** The weights of the usual layer. */
export interface DecoderLayer {
  readonly attention: SelfAttention;
  readonly feedForward: FeedForward;
}

/** The same where a mixture of experts stands in for the feed-forward block. */
export interface MixtureLayer {
  readonly attention: SelfAttention;
  readonly mixture: Mixture;
}

/** Of one layer: as `AttentionUse`, with what all layers share filled in. */
export interface LayerUse extends Omit<AttentionUse, "shape" | "rotation"> {
  readonly shape?: AttentionShape;
  /** The name of its rope; none hides positions from it. */
  readonly rope: string | undefined;
}

export abstract class Decoder implements Model {
  readonly config: ModelConfig;
  readonly weights: Weights;
  readonly cache: CacheShape;
  readonly states: Readonly<Record<string, number>>;
  readonly layerMemory: readonly LayerMemory[];
  readonly ends: Model["ends"];
  readonly carried: readonly string[];
  readonly attentions: readonly HeadShape[];
  readonly scratch: Readonly<Record<string, number>>;
  readonly workspace: number;
  readonly tables: Readonly<Record<string, Uint8Array>>;
  readonly shape: DecoderShape;
  readonly #ropes: Readonly<Record<string, Rope>>;
  readonly #embedding: Matrix;
  readonly #head: OutputHeadUse["head"];
  readonly #expertsUsed: number;

  constructor(reader: ConfigReader, options: DecoderOptions) {
    const { shape, mixture, ropes, postNorms = false, cache, scratch = {} } = options;
    const { states = {}, outputNorm, attentions = [shape], early } = options;
    this.config = reader.common();
    this.weights = new Weights(reader.file);
    this.shape = shape;
    this.#ropes = ropes;
    const { width, layerCount, vocabularySize } = this.config;
    const { heads, kvHeads, headWidth, feedForward } = shape;
    this.#embedding = this.weights.matrix("token_embd.weight", vocabularySize, width);
    this.#head = declareOutputHead(this.weights, this.config, outputNorm);
    this.cache = cache ?? evenCache(layerCount, { kvHeads, headWidth });
    this.states = states;
    const { norm, output } = this.#head;
    const embedding = [this.#embedding.name, ...(early?.weights ?? [])];
    this.ends = { embedding, head: [norm.name, output.name] };
    this.carried = ["x", ...(early?.activations ?? [])];
    this.layerMemory =
      options.layerMemory ??
      Array.from({ length: layerCount }, (_unused, cache) => ({ cache, states: [] }));
    this.attentions = attentions;
    this.scratch = {
      x: width,
      query: heads * headWidth,
      key: kvHeads * headWidth,
      value: kvHeads * headWidth,
      attended: heads * headWidth,
      ...(feedForward > 0 && { gated: feedForward }),
      ...(postNorms && { branch: width }),
      ...scratch,
    };
    this.workspace = Math.max(
      width,
      gatedProductFloats(width, feedForward),
      ...attentions.map(attentionFloats),
      mixture === undefined ? 0 : mixtureFloats(width, mixture),
    );
    this.#expertsUsed = mixture?.routing.used ?? 1;
    this.tables = Object.fromEntries(
      Object.entries(ropes).map(([name, { radians }]) => [name, rotaryTurns(radians)]),
    );
  }

  /** Of an embedding table that is not the head as well, a step reads one row. */
  get stepBytes(): number {
    const byteSize = this.weights.activeByteSize(this.#expertsUsed);
    const isTied = this.#head.output === this.#embedding;
    return isTied ? byteSize : byteSize - this.weights.byteSizeOf("token_embd.weight");
  }

  abstract record(context: KernelContext, pass: Pass): void;

  /** One object a layer, from the prefix of its tensors' names. */
  protected layers<L>(declare: (prefix: string, index: number) => L): readonly L[] {
    const { layerCount } = this.config;
    return Array.from({ length: layerCount }, (_unused, i) => declare(`blk.${i}`, i));
  }

  /** x = scale · Embedding[token], in front of the first layer */
  protected embed(context: KernelContext, pass: Pass, scale = 1): void {
    if (pass.layers.first > 0) return;
    const { step, latest, rowCapacity } = pass;
    const x = scratchSlice(pass, "x");
    embed(context, { table: this.#embedding, x, step, latest, rowCapacity, scale });
  }

  protected attend(context: KernelContext, pass: Pass, { rope, ...use }: LayerUse): void {
    const rotation = rope === undefined ? undefined : this.#rotation(pass, rope);
    selfAttention(context, pass, { shape: this.shape, ...use, rotation });
  }

  /** The head, behind the last layer. */
  protected readOut(
    context: KernelContext,
    pass: Pass,
    options: Omit<OutputHeadUse, "head" | "epsilon"> = {},
  ): void {
    if (pass.layers.end < this.config.layerCount) return;
    const { epsilon } = this.shape;
    outputHead(context, pass, { head: this.#head, epsilon, ...options });
  }

  #rotation(pass: Pass, name: string): Rotation {
    const rope = this.#ropes[name];
    invariant(rope !== undefined, `no rope ${name}`);
    return rotationOf(pass, rope, name);
  }
}

/** The usual keys. */
export function readDecoderShape(reader: ConfigReader): DecoderShape {
  return {
    ...readAttentionShape(reader),
    feedForward: reader.count("feed_forward_length", 1 << 20),
  };
}

/** The same of a model whose feed-forward blocks are all mixtures of experts. */
export function readMixtureDecoderShape(reader: ConfigReader): DecoderShape {
  return { ...readAttentionShape(reader), feedForward: 0 };
}

function readAttentionShape(reader: ConfigReader): AttentionShape {
  const { heads, kvHeads } = reader.heads();
  const width = reader.count("embedding_length", 1 << 20);
  const headWidth = reader.count("attention.key_length", 512, Math.floor(width / heads));
  const valueWidth = reader.count("attention.value_length", 512, headWidth);
  if (headWidth % 8 !== 0 || valueWidth !== headWidth) {
    throw reader.unsupported(`attention heads of width ${headWidth} (values ${valueWidth})`);
  }
  return {
    heads,
    kvHeads,
    headWidth,
    epsilon: reader.positive("attention.layer_norm_rms_epsilon"),
    scale: reader.optionalPositive("attention.scale") ?? 1 / Math.sqrt(headWidth),
  };
}
