/**
 * Thousands of damaged files, the same in every run: each opens or is refused, never anything else.
 */
import { expect, test } from "bun:test";
import { UserError } from "../../src/errors.ts";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { blockSizeOfId } from "../../src/gguf/tensor-type.ts";
import { dtypes } from "../../src/tensor/dtype.ts";
import { forgeGguf, numbers, scalar, text, texts } from "../helpers/gguf-forge.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

const files = [1, 2, 3].map((version) =>
  forgeGguf({
    version,
    pairs: [
      ["general.architecture", text("llama")],
      ["general.alignment", scalar("u32", 32)],
      ["llama.block_count", scalar("u32", 2)],
      ["llama.rope.freq_base", scalar("f32", 10_000)],
      ["tokenizer.ggml.tokens", texts(["a", "b", "é", "", "😀"])],
      ["tokenizer.ggml.scores", numbers("f32", [0, -1, -2, -3, -4])],
      ["tokenizer.ggml.token_type", numbers("i32", [1, 1, 1, 6, 3])],
      ["tokenizer.ggml.add_bos_token", scalar("bool", true)],
      ["big", scalar("u64", 2n ** 40n)],
      ["flags", numbers("bool", [true, false])],
    ],
    tensors: dtypes.map((type, i) => ({ name: `blk.${i}.w`, dims: [256], type })),
  }),
);

/** Uses everything that a header offers. */
function exercise(bytes: Uint8Array): void {
  using file = openGgufBytes("fuzz.gguf", bytes);
  for (const [, value] of file.metadata.entries()) {
    if (value.type === "strings") for (let i = 0; i < value.value.length; i++) value.value.at(i);
  }
  for (const tensor of file.tensors) {
    const { sizeBytes } = tensor;
    expect(blockSizeOfId(tensor.typeId) === undefined).toBe(sizeBytes === undefined);
    if (sizeBytes !== undefined) expect(file.readTensorSync(tensor).length).toBe(sizeBytes);
  }
  file.metadata.strings("tokenizer.ggml.tokens");
  file.metadata.floats("tokenizer.ggml.scores");
  file.metadata.integers("tokenizer.ggml.token_type");
  file.metadata.boolean("tokenizer.ggml.add_bos_token");
  file.metadata.string("general.architecture");
}

/** One to four bytes flipped, set to an extreme, or exchanged; sometimes the end cut off. */
function damage(bytes: Uint8Array, headerBytes: number, random: SeededRandom): Uint8Array {
  const result = bytes.slice();
  for (let i = random.below(4); i >= 0; i--) {
    const at = random.below(headerBytes);
    const kind = random.below(4);
    if (kind === 0) result[at] = (result[at] ?? 0) ^ (1 << random.below(8));
    if (kind === 1) result[at] = random.below(256);
    if (kind === 2) result.fill(0xff, at, at + 1 + random.below(8));
    if (kind === 3) result.fill(0, at, at + 1 + random.below(8));
  }
  return random.below(8) === 0 ? result.slice(0, random.below(result.length)) : result;
}

test.each([1, 2, 3])("2000 damaged files of version %i are opened or refused", (version) => {
  const file = files[version - 1] ?? new Uint8Array();
  exercise(file);
  const headerBytes = openGgufBytes("fuzz.gguf", file).tensors[0]?.offsetBytes ?? 0;
  const random = new SeededRandom(version);
  let refused = 0;
  const before = process.cpuUsage();
  for (let i = 0; i < 2000; i++) {
    const bytes = damage(file, headerBytes, random);
    try {
      exercise(bytes);
    } catch (error) {
      if (!(error instanceof UserError) || error.kind !== "model") {
        throw new Error(`damaged file ${i} of version ${version}`, { cause: error });
      }
      refused++;
    }
  }
  // Neither everything nor nothing: the damage is small enough to matter.
  expect(refused).toBeGreaterThan(500);
  expect(refused).toBeLessThan(1950);
  // Processor time, since other work on the machine must not fail the test.
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(4000);
});
