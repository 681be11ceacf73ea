/**
 * The forward pass of Qwen3.5 and Qwen3-Next in plain loops and double precision, written from the
 * papers and from what converters do to the weights: what the models on the device are compared
 * with. Slow, and exact but for keys and values, which are rounded to halves as in the cache: some
 * heads of trained models turn that into two percent of a deviation.
 */
import type { GgufFile } from "../../src/gguf/file.ts";
import { dequantize } from "../../src/tensor/dequantize.ts";
import { floatToHalf, halfToFloat } from "../../src/tensor/half.ts";

type Vector = Float64Array;

export interface ReferenceResult {
  /** Behind each token. */
  readonly logits: Vector[];
  /**
   * For each token how far, in the logits of the router for which it is least, the last expert that
   * was chosen lies above the first that was not. Infinite for dense models.
   */
  readonly margins: number[];
  /** Of each token, what the head reads. */
  readonly hidden: Vector[];
}

interface Memory {
  readonly convolved: Vector[];
  readonly heads: Vector[];
  readonly keys: Vector[];
  readonly values: Vector[];
}

export class Qwen35Reference {
  readonly #file: GgufFile;
  readonly #architecture: string;
  readonly #cache = new Map<string, Float32Array>();
  #margin = Number.POSITIVE_INFINITY;

  constructor(file: GgufFile) {
    this.#file = file;
    this.#architecture = file.metadata.string("general.architecture") ?? "";
  }

  /** All tokens from an empty context. */
  run(tokens: readonly number[]): ReferenceResult {
    const width = this.#count("embedding_length");
    const blocks = this.#count("block_count") - (this.#number("nextn_predict_layers") ?? 0);
    const memories: Memory[] = Array.from({ length: blocks }, () => ({
      convolved: [],
      heads: [],
      keys: [],
      values: [],
    }));
    const embeddings = this.#weight("token_embd.weight");
    const head = this.#file.tensor("output.weight") ? "output.weight" : "token_embd.weight";
    const margins: number[] = [];
    const hidden = tokens.map((token, position) => {
      this.#margin = Number.POSITIVE_INFINITY;
      let x: Vector = Float64Array.from(embeddings.subarray(token * width, (token + 1) * width));
      memories.forEach((memory, layer) => {
        x = this.#block(layer, x, position, memory);
      });
      margins.push(this.#margin);
      return this.#norm(x, "output_norm.weight");
    });
    return { logits: hidden.map((h) => this.#times(head, h)), margins, hidden };
  }

  /**
   * The logits of further tokens behind some, by the first block behind the model's own: of each
   * guess the best token is what the next one follows.
   */
  guess(tokens: readonly number[], depth: number): Vector[] {
    const width = this.#count("embedding_length");
    const layer = this.#count("block_count") - this.#count("nextn_predict_layers");
    const embeddings = this.#weight("token_embd.weight");
    const head = this.#file.tensor("output.weight") ? "output.weight" : "token_embd.weight";
    const of = (name: string) => `blk.${layer}.nextn.${name}.weight`;
    const memory: Memory = { convolved: [], heads: [], keys: [], values: [] };
    const { hidden } = this.run(tokens.slice(0, -1));
    const fed = tokens.slice(1);
    const guesses: Vector[] = [];
    for (let position = 0; guesses.length < depth; position++) {
      const token = at(fed, position);
      const embedded = embeddings.subarray(token * width, (token + 1) * width);
      const joined = concat([
        this.#norm(Float64Array.from(embedded), of("enorm")),
        this.#norm(hidden[position] ?? new Float64Array(width), of("hnorm")),
      ]);
      const x = this.#block(layer, this.#times(of("eh_proj"), joined), position, memory);
      if (position < fed.length - 1) continue;
      const normed = this.#norm(x, of("shared_head_norm"));
      const logits = this.#times(head, normed);
      guesses.push(logits);
      hidden.push(normed);
      fed.push(logits.indexOf(Math.max(...logits)));
    }
    return guesses;
  }

  #block(layer: number, input: Vector, position: number, memory: Memory): Vector {
    const isRecurrent = this.#file.tensor(`blk.${layer}.ssm_a`) !== undefined;
    const h = this.#norm(input, `blk.${layer}.attn_norm.weight`);
    const mixed = isRecurrent
      ? this.#delta(layer, h, memory)
      : this.#attend(layer, h, position, memory);
    const x = sum(input, mixed);
    return sum(
      x,
      this.#feedForward(layer, this.#norm(x, `blk.${layer}.post_attention_norm.weight`)),
    );
  }

  /** Normalized heads, of which a part is rotated; causal attention; a gate on what it gives. */
  #attend(layer: number, h: Vector, position: number, memory: Memory): Vector {
    const of = (name: string) => `blk.${layer}.${name}.weight`;
    const heads = this.#count("attention.head_count");
    const kvHeads = this.#count("attention.head_count_kv");
    const width = this.#count("attention.key_length");
    const turn = (x: Vector, name: string) => this.#rotate(this.#norm(x, of(name)), position);
    const both = this.#times(of("attn_q"), h);
    const key = this.#times(of("attn_k"), h);
    memory.keys.push(
      halved(concat(range(kvHeads, (i) => turn(part(key, i, width), "attn_k_norm")))),
    );
    memory.values.push(halved(this.#times(of("attn_v"), h)));
    const attended = range(heads, (head) => {
      const query = turn(part(both, 2 * head, width), "attn_q_norm");
      const gate = part(both, 2 * head + 1, width);
      const shared = Math.floor((head * kvHeads) / heads);
      const weights = softmax(
        memory.keys.map((keys) => dot(query, part(keys, shared, width)) / Math.sqrt(width)),
      );
      const result = new Float64Array(width);
      memory.values.forEach((values, t) =>
        part(values, shared, width).forEach((value, i) => {
          result[i] = at(result, i) + at(weights, t) * value;
        }),
      );
      return result.map((value, i) => value * sigmoid(at(gate, i)));
    });
    return this.#times(of("attn_output"), concat(attended));
  }

  #rotate(x: Vector, position: number): Vector {
    const rotary = this.#number("rope.dimension_count") ?? x.length;
    const base = this.#number("rope.freq_base") ?? 10_000;
    const result = Float64Array.from(x);
    for (let i = 0; i < rotary / 2; i++) {
      const angle = position * base ** ((-2 * i) / rotary);
      const [a, b] = [at(x, i), at(x, i + rotary / 2)];
      result[i] = a * Math.cos(angle) - b * Math.sin(angle);
      result[i + rotary / 2] = a * Math.sin(angle) + b * Math.cos(angle);
    }
    return result;
  }

  /** A gated delta net; its state is [keys, values] a head here. */
  #delta(layer: number, h: Vector, memory: Memory): Vector {
    const of = (name: string) => `blk.${layer}.${name}`;
    const isGrouped = this.#architecture === "qwen3next";
    const width = this.#count("ssm.state_size");
    const keyHeads = this.#count("ssm.group_count");
    const heads = this.#count("ssm.time_step_rank");
    memory.convolved.push(this.#times(of("attn_qkv.weight"), h));
    const mixed = this.#convolve(of("ssm_conv1d.weight"), memory.convolved);
    const z = this.#times(of("attn_gate.weight"), h);
    const { betas, alphas } = this.#gates(layer, h, heads, keyHeads);
    const results = range(heads, (head) => {
      const keyHead = isGrouped ? Math.floor((head * keyHeads) / heads) : head % keyHeads;
      const query = scale(this.#unit(part(mixed, keyHead, width)), 1 / Math.sqrt(width));
      const key = this.#unit(part(mixed, keyHeads + keyHead, width));
      const value = part(mixed, 2 * keyHeads + head, width);
      const state = (memory.heads[head] ??= new Float64Array(width * width));
      const offset = at(this.#weight(of("ssm_dt.bias")), head);
      const softplus = Math.log1p(Math.exp(at(alphas, head) + offset));
      const kept = Math.exp(at(this.#weight(of("ssm_a")), head) * softplus);
      state.forEach((x, i) => (state[i] = x * kept));
      const written = value.map((v, j) => sigmoid(at(betas, head)) * (v - column(state, j, key)));
      state.forEach((x, i) => {
        state[i] = x + at(key, Math.floor(i / width)) * at(written, i % width);
      });
      const recalled = value.map((_, j) => column(state, j, query));
      const gate = part(z, head, width);
      return this.#norm(recalled, of("ssm_norm.weight")).map(
        (x, i) => x * at(gate, i) * sigmoid(at(gate, i)),
      );
    });
    return this.#times(of("ssm_out.weight"), concat(results));
  }

  #gates(layer: number, h: Vector, heads: number, keyHeads: number) {
    const of = (name: string) => `blk.${layer}.${name}.weight`;
    if (this.#architecture !== "qwen3next") {
      return { betas: this.#times(of("ssm_beta"), h), alphas: this.#times(of("ssm_alpha"), h) };
    }
    const both = this.#times(of("ssm_ba"), h);
    const sharing = heads / keyHeads;
    const pick = (second: number) =>
      Float64Array.from(
        range(heads, (head) =>
          at(both, 2 * sharing * Math.floor(head / sharing) + second * sharing + (head % sharing)),
        ),
      );
    return { betas: pick(0), alphas: pick(1) };
  }

  /** The newest output of the convolution over all inputs so far, with SiLU. */
  #convolve(name: string, inputs: readonly Vector[]): Vector {
    const weight = this.#weight(name);
    const channels = inputs[0]?.length ?? 0;
    const taps = weight.length / channels;
    return Float64Array.from(
      range(channels, (c) => {
        const total = inputs
          .slice(-taps)
          .reduceRight<number>(
            (acc, u, i, recent) => acc + at(weight, c * taps + taps - recent.length + i) * at(u, c),
            0,
          );
        return total * sigmoid(total);
      }),
    );
  }

  #feedForward(layer: number, h: Vector): Vector {
    const of = (name: string) => `blk.${layer}.${name}.weight`;
    if (this.#file.tensor(of("ffn_gate_inp")) === undefined) {
      return this.#glu(of("ffn_gate"), of("ffn_up"), of("ffn_down"), h);
    }
    const logits = this.#times(of("ffn_gate_inp"), h);
    const used = this.#count("expert_used_count");
    const order = range(logits.length, (i) => i).toSorted((a, b) => at(logits, b) - at(logits, a));
    const [last, next] = [order[used - 1] ?? 0, order[used]];
    if (next !== undefined)
      this.#margin = Math.min(this.#margin, at(logits, last) - at(logits, next));
    const chosen = order.slice(0, used);
    const weights = softmax(chosen.map((expert) => at(logits, expert)));
    let result = chosen.reduce<Vector>(
      (acc, expert, i) => sum(acc, scale(this.#expert(layer, expert, h), at(weights, i))),
      new Float64Array(h.length),
    );
    if (this.#file.tensor(of("ffn_up_shexp")) !== undefined) {
      const shared = this.#glu(of("ffn_gate_shexp"), of("ffn_up_shexp"), of("ffn_down_shexp"), h);
      result = sum(result, scale(shared, sigmoid(dot(this.#weight(of("ffn_gate_inp_shexp")), h))));
    }
    return result;
  }

  #expert(layer: number, expert: number, h: Vector): Vector {
    const of = (name: string) => `blk.${layer}.${name}.weight`;
    const feedForward = this.#count("expert_feed_forward_length");
    const isMerged = this.#file.tensor(of("ffn_gate_up_exps")) !== undefined;
    const gated = isMerged
      ? this.#times(of("ffn_gate_up_exps"), h, expert * 2 * feedForward, 2 * feedForward)
      : concat([
          this.#times(of("ffn_gate_exps"), h, expert * feedForward, feedForward),
          this.#times(of("ffn_up_exps"), h, expert * feedForward, feedForward),
        ]);
    const active = Float64Array.from(
      range(feedForward, (i) => at(gated, i) * sigmoid(at(gated, i)) * at(gated, i + feedForward)),
    );
    return this.#times(of("ffn_down_exps"), active, expert * h.length, h.length);
  }

  #glu(gate: string, up: string, down: string, h: Vector): Vector {
    const ups = this.#times(up, h);
    return this.#times(
      down,
      this.#times(gate, h).map((g, i) => g * sigmoid(g) * at(ups, i)),
    );
  }

  /** Rows of a matrix times x. */
  #times(name: string, x: Vector, first = 0, count?: number): Vector {
    const w = this.#weight(name);
    const rows = count ?? w.length / x.length;
    const y = new Float64Array(rows);
    for (let r = 0; r < rows; r++) {
      let total = 0;
      const start = (first + r) * x.length;
      for (let i = 0; i < x.length; i++) total += (w[start + i] ?? 0) * (x[i] ?? 0);
      y[r] = total;
    }
    return y;
  }

  #norm(x: Vector, name: string): Vector {
    const weight = this.#weight(name);
    const factor = 1 / Math.sqrt(dot(x, x) / x.length + this.#epsilon);
    return x.map((value, i) => value * factor * at(weight, i));
  }

  #unit(x: Vector): Vector {
    return scale(x, 1 / Math.max(Math.sqrt(dot(x, x)), this.#epsilon));
  }

  get #epsilon(): number {
    return this.#number("attention.layer_norm_rms_epsilon") ?? Number.NaN;
  }

  #weight(name: string): Float32Array {
    const known = this.#cache.get(name);
    if (known !== undefined) return known;
    const tensor = this.#file.tensor(name);
    if (tensor === undefined) throw new Error(`the file has no ${name}`);
    const values = dequantize(this.#file.dtypeOf(tensor), this.#file.readTensorSync(tensor));
    this.#cache.set(name, values);
    return values;
  }

  #number(key: string): number | undefined {
    return this.#file.metadata.number(`${this.#architecture}.${key}`);
  }

  #count(key: string): number {
    const value = this.#number(key);
    if (value === undefined) throw new Error(`the file has no ${key}`);
    return value;
  }
}

function range<T>(count: number, of: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => of(i));
}

function at(x: ArrayLike<number>, i: number): number {
  return x[i] ?? Number.NaN;
}

function halved(x: Vector): Vector {
  return x.map((value) => halfToFloat(floatToHalf(value)));
}

function part(x: Vector, index: number, width: number): Vector {
  return x.subarray(index * width, (index + 1) * width);
}

function concat(parts: readonly Vector[]): Vector {
  return Float64Array.from(parts.flatMap((values) => [...values]));
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += at(a, i) * at(b, i);
  return total;
}

/** Column j of a square matrix, row by row, times x. */
function column(matrix: Vector, j: number, x: Vector): number {
  let total = 0;
  for (let i = 0; i < x.length; i++) total += at(matrix, i * x.length + j) * at(x, i);
  return total;
}

function scale(x: Vector, factor: number): Vector {
  return x.map((value) => value * factor);
}

function sum(a: Vector, b: Vector): Vector {
  return a.map((value, i) => value + at(b, i));
}

function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x));
}

function softmax(values: readonly number[]): Vector {
  const best = Math.max(...values);
  const powers = Float64Array.from(values, (value) => Math.exp(value - best));
  return scale(powers, 1 / powers.reduce((total, power) => total + power, 0));
}
