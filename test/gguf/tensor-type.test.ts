/** Types that zinc does not compute with: files list them, and only their use is an error. */
import { describe, expect, test } from "bun:test";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { blockSizeOfId, requireDType, typeNameOfId } from "../../src/gguf/tensor-type.ts";
import { removedTypeIds, unsupportedTypeNames } from "../../src/tensor/dtype.ts";
import { refusalOf } from "../helpers/bad-model.ts";
import { forgeGguf, texts } from "../helpers/gguf-forge.ts";

/** A file with a vocabulary and one tensor of the type, with 512 bytes for it. */
function fileOfType(id: number) {
  return openGgufBytes(
    "m.gguf",
    forgeGguf({
      pairs: [["tokenizer.ggml.tokens", texts(["a"])]],
      tensors: [{ name: "blk.0.w", dims: [256], type: id, bytes: new Uint8Array(2048) }],
    }),
  );
}

test("known types that are not supported have a name and a size", () => {
  const sizes = Object.entries(unsupportedTypeNames).map(([id, name]) => {
    const { blockBytes, blockValues } = blockSizeOfId(Number(id)) ?? {};
    return `${name} ${blockBytes}/${blockValues}`;
  });
  expect(sizes).toEqual([
    "Q8_1 36/32",
    "Q8_K 292/256",
    "IQ2_XXS 66/256",
    "IQ2_XS 74/256",
    "IQ3_XXS 98/256",
    "IQ1_S 50/256",
    "IQ3_S 110/256",
    "IQ2_S 82/256",
    "I8 1/1",
    "I16 2/1",
    "I32 4/1",
    "I64 8/1",
    "F64 8/1",
    "IQ1_M 56/256",
    "TQ1_0 54/256",
    "TQ2_0 66/256",
    "NVFP4 36/64",
    "Q1_0 18/128",
    "Q2_0 18/64",
  ]);
});

test("removed types have the name they had, and unknown ones their number", () => {
  expect([...removedTypeIds].map(typeNameOfId)).toEqual([
    "Q4_2",
    "Q4_3",
    "Q4_0_4_4",
    "Q4_0_4_8",
    "Q4_0_8_8",
    "IQ4_NL_4_4",
    "IQ4_NL_4_8",
    "IQ4_NL_8_8",
  ]);
  expect(typeNameOfId(199)).toBe("type 199");
  expect(blockSizeOfId(199)).toBeUndefined();
  expect(blockSizeOfId(4)).toBeUndefined();
});

describe.each(Object.entries(unsupportedTypeNames))("type %s, %s,", (id, name) => {
  test("is listed, and refused where it is needed", () => {
    using file = fileOfType(Number(id));
    const [tensor] = file.tensors;
    expect(tensor).toMatchObject({ typeName: name, dtype: undefined, typeId: Number(id) });
    expect(tensor?.sizeBytes).toBeGreaterThan(0);
    expect(file.metadata.strings("tokenizer.ggml.tokens")?.at(0)).toBe("a");
    expect(refusalOf(() => tensor && file.dtypeOf(tensor), "m.gguf")).toBe(
      `m.gguf: tensor blk.0.w has the unsupported type ${name} (id ${id}); ` +
        "update zinc or pick another quantization",
    );
  });
});

test.each([199, 43, 0xffffffff])("the future type %i is listed, and refused if needed", (id) => {
  using file = fileOfType(id);
  const [tensor] = file.tensors;
  expect(tensor).toMatchObject({ typeName: `type ${id}`, dtype: undefined, sizeBytes: undefined });
  expect(refusalOf(() => tensor && file.dtypeOf(tensor), "m.gguf")).toBe(
    `m.gguf: tensor blk.0.w has the unknown type id ${id}; ` +
      "update zinc or pick another quantization",
  );
});

test.each([
  [4, "Q4_2"],
  [5, "Q4_3"],
  [31, "Q4_0_4_4"],
  [38, "IQ4_NL_8_8"],
] as const)("the removed type %i, %s, is listed, and refused where it is needed", (id, name) => {
  using file = fileOfType(id);
  const [tensor] = file.tensors;
  expect(tensor).toMatchObject({ typeName: name, dtype: undefined, sizeBytes: undefined });
  expect(refusalOf(() => tensor && requireDType(tensor, "m.gguf"), "m.gguf")).toBe(
    `m.gguf: tensor blk.0.w has type ${name} (id ${id}), which GGML has removed; ` +
      "pick another quantization or a newer conversion of the model",
  );
});
