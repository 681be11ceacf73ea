/** What Llama says of files that it cannot run. No device is needed to find out. */
import { describe, expect, test } from "bun:test";
import { UserError } from "../../src/errors.ts";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import type { Model } from "../../src/model/model.ts";
import {
  numbers,
  scalar,
  text,
  texts,
  type ForgedTensor,
  type ForgedValue,
} from "../helpers/gguf-forge.ts";
import { tinyLlama, type TinyOptions } from "../helpers/tiny-llama.ts";

function describeTiny(options: TinyOptions): Model {
  const model = describeModel(openGgufBytes("tiny.gguf", tinyLlama(options).bytes));
  model.weights.declared();
  return model;
}

/** The line that a person reads, without the file's name and the remedy. */
function refusalOf(options: TinyOptions): string | undefined {
  try {
    describeTiny(options);
    return undefined;
  } catch (error) {
    if (!(error instanceof UserError) || error.kind !== "model") throw error;
    expect(error.message).toStartWith("tiny.gguf: ");
    expect(error.remedy).toBeDefined();
    return error.message.slice("tiny.gguf: ".length);
  }
}

const without = (...names: string[]) => ({
  edit: (tensors: readonly ForgedTensor[]) =>
    tensors.filter(({ name }) => !names.includes(String(name))),
});

const withDims = (name: string, dims: number[]) => ({
  edit: (tensors: readonly ForgedTensor[]) =>
    tensors.map((tensor) => (tensor.name === name ? { name, dims, type: tensor.type } : tensor)),
});

const withPair = (key: string, value: ForgedValue | undefined) => ({ pairs: { [key]: value } });
const u32 = (value: number) => scalar("u32", value);
const f32 = (value: number) => scalar("f32", value);

describe("a file without", () => {
  test("anything missing is fine", () => {
    expect(refusalOf({})).toBeUndefined();
  });

  test("one tensor names it", () => {
    expect(refusalOf(without("blk.1.ffn_up.weight"))).toBe("tensor blk.1.ffn_up.weight is missing");
  });

  test("several names all of them at once", () => {
    expect(
      refusalOf(without("output_norm.weight", "blk.0.attn_q.weight", "blk.1.attn_norm.weight")),
    ).toBe(
      "tensor output_norm.weight is missing, tensor blk.0.attn_q.weight is missing, " +
        "tensor blk.1.attn_norm.weight is missing",
    );
  });

  test("a whole layer names five of its tensors and counts the rest", () => {
    expect(refusalOf(withPair("llama.block_count", u32(3)))).toBe(
      "tensor blk.2.attn_q.weight is missing, tensor blk.2.attn_k.weight is missing, " +
        "tensor blk.2.attn_v.weight is missing, tensor blk.2.attn_norm.weight is missing, " +
        "tensor blk.2.attn_output.weight is missing and 4 more",
    );
  });

  test("an embedding table, or with a vector in its place, says so", () => {
    const message = "tensor token_embd.weight is missing or no matrix";
    expect(refusalOf(without("token_embd.weight"))).toBe(message);
    expect(refusalOf(withDims("token_embd.weight", [64]))).toBe(message);
  });

  test.each([
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.layer_norm_rms_epsilon",
  ])("the key %s says so, and with another type of value, too", (key) => {
    expect(refusalOf(withPair(`llama.${key}`, undefined))).toBe(`metadata llama.${key} is missing`);
    expect(refusalOf(withPair(`llama.${key}`, text("?")))).toContain(`llama.${key}`);
  });

  test("an architecture says so", () => {
    expect(refusalOf(withPair("general.architecture", undefined))).toBe(
      "metadata general.architecture is missing",
    );
  });

  test("a name goes by that of the file", () => {
    expect(describeTiny(withPair("general.name", undefined)).config.name).toBe("tiny.gguf");
  });
});

describe("a tensor of another shape", () => {
  test.each<[string, number[], string]>([
    ["blk.0.attn_k.weight", [64, 64], "[64, 64] and should be [64, 32]"],
    ["blk.1.ffn_down.weight", [64, 96], "[64, 96] and should be [96, 64]"],
    ["output_norm.weight", [65], "[65] and should be [64]"],
    ["output_norm.weight", [64, 2], "[64, 2] and should be [64]"],
    ["output.weight", [64, 41], "[64, 41] and should be [64, 40]"],
  ])("%s %j", (name, dims, message) => {
    expect(refusalOf(withDims(name, dims))).toBe(`tensor ${name} is ${message}`);
  });

  test("may have dimensions of 1 behind its own", () => {
    expect(refusalOf(withDims("output_norm.weight", [64, 1, 1]))).toBeUndefined();
  });

  test("is not only reported, but all are", () => {
    const both = (tensors: readonly ForgedTensor[]) =>
      withDims("output_norm.weight", [8]).edit(
        without("output.weight", "blk.0.ffn_up.weight").edit(tensors),
      );
    expect(refusalOf({ edit: both })).toBe(
      "tensor output_norm.weight is [8] and should be [64], tensor blk.0.ffn_up.weight is missing",
    );
  });

  test("whose rows are no whole words is refused", () => {
    expect(refusalOf({ width: 60, layers: 1 })).toStartWith(
      "token_embd.weight has rows of 60 F32 values",
    );
  });

  test("biases have one, too", () => {
    expect(refusalOf({ biases: true, ...withDims("blk.0.attn_q.bias", [63]) })).toBe(
      "tensor blk.0.attn_q.bias is [63] and should be [64]",
    );
  });
});

describe("metadata that makes no sense:", () => {
  test.each<[string, ForgedValue, string]>([
    ["block_count", u32(0), "metadata llama.block_count is 0 and must be 1 to 1024"],
    ["block_count", u32(2000), "metadata llama.block_count is 2000 and must be 1 to 1024"],
    ["context_length", u32(0), "metadata llama.context_length is 0 and must be 1 to 1073741824"],
    ["embedding_length", u32(0), "metadata llama.embedding_length is 0 and must be 1 to 1048576"],
    [
      "feed_forward_length",
      u32(0),
      "metadata llama.feed_forward_length is 0 and must be 1 to 1048576",
    ],
    [
      "attention.head_count",
      u32(0),
      "metadata llama.attention.head_count is 0 and must be 1 to 4096",
    ],
    [
      "attention.head_count_kv",
      u32(0),
      "metadata llama.attention.head_count_kv is 0 and must be 1 to 4096",
    ],
    ["attention.head_count_kv", u32(3), "4 attention heads cannot share 3 key/value heads evenly"],
    ["attention.key_length", u32(12), "attention heads of width 12 (values 16) cannot be run"],
    ["attention.value_length", u32(32), "attention heads of width 16 (values 32) cannot be run"],
    [
      "attention.layer_norm_rms_epsilon",
      f32(0),
      "metadata llama.attention.layer_norm_rms_epsilon is 0 and must be above 0",
    ],
    [
      "attention.layer_norm_rms_epsilon",
      f32(Number.NaN),
      "metadata llama.attention.layer_norm_rms_epsilon is NaN and must be above 0",
    ],
    [
      "attention.layer_norm_rms_epsilon",
      f32(Infinity),
      "metadata llama.attention.layer_norm_rms_epsilon is Infinity and must be above 0",
    ],
    ["expert_count", u32(8), "metadata llama.expert_used_count is missing"],
    ["rope.dimension_count", u32(7), "rope.dimension_count 7 is odd"],
    [
      "rope.dimension_count",
      u32(18),
      "metadata llama.rope.dimension_count is 18 and must be 1 to 16",
    ],
    ["rope.freq_base", f32(-1), "metadata llama.rope.freq_base is -1 and must be above 0"],
    ["rope.scaling.type", text("magic"), 'rope.scaling.type is "magic", which zinc does not know'],
    ["rope.scaling.factor", f32(0), "metadata llama.rope.scaling.factor is 0 and must be above 0"],
  ])("%s", (key, value, message) => {
    expect(refusalOf(withPair(`llama.${key}`, value))).toBe(message);
  });

  test("as many heads as layers, each its own, is refused and not misread", () => {
    const perLayer = numbers("u32", [4, 2]);
    expect(refusalOf(withPair("llama.attention.head_count", perLayer))).toBeDefined();
  });
});

describe("the vocabulary", () => {
  const tokens = (count: number) =>
    withPair("tokenizer.ggml.tokens", texts(Array.from({ length: count }, (_, i) => `t${i}`)));

  test("may be smaller than the embedding table: rows for padding are legal", () => {
    expect(describeTiny(tokens(30)).config.vocabularySize).toBe(40);
  });

  test("must not be larger", () => {
    expect(refusalOf(tokens(41))).toBe(
      "the vocabulary has 41 tokens and the embedding table 40 rows",
    );
  });
});

describe("the architecture", () => {
  test("that zinc does not know is named, with those that it does", () => {
    expect(refusalOf(withPair("general.architecture", text("gpt2")))).toBe(
      'architecture "gpt2" is not supported',
    );
    expect(refusalOf(withPair("general.architecture", text("toString")))).toBe(
      'architecture "toString" is not supported',
    );
  });

  test("gives what a person wants to know of the model", () => {
    expect(describeTiny({}).config).toEqual({
      architecture: "llama",
      name: "tiny",
      layerCount: 2,
      contextLength: 256,
      width: 64,
      vocabularySize: 40,
      pooling: "last",
    });
  });

  test("counts the bytes that a step reads: all but a table that is not the head as well", () => {
    const table = 40 * 64 * 4;
    const [own, tied] = [describeTiny({}), describeTiny({ tied: true })];
    expect(own.weights.byteSize - own.stepBytes).toBe(table);
    expect(tied.weights.byteSize - tied.stepBytes).toBe(0);
    expect(own.weights.byteSize - tied.weights.byteSize).toBe(table);
  });
});
