/**
 * GGML type ids as files have them, which are more than zinc computes with. Reading a file's tables
 * works for every id; only the use of a tensor needs a type that we know.
 */
import {
  blockFormats,
  dtypeOfId,
  removedTypeIds,
  unsupportedTypeNames,
  type DType,
} from "../tensor/dtype.ts";
import { badFile } from "./bad-file.ts";
import type { TensorInfo } from "./tensor-info.ts";

/** Values and bytes of a block. */
export interface BlockSize {
  readonly blockValues: number;
  readonly blockBytes: number;
}

/** Blocks of the types that exist and that zinc does not compute with: [values, bytes]. */
const foreignBlocks: Readonly<Record<string, readonly [number, number]>> = {
  Q8_1: [32, 36],
  Q8_K: [256, 292],
  IQ1_S: [256, 50],
  IQ1_M: [256, 56],
  IQ2_XXS: [256, 66],
  IQ2_XS: [256, 74],
  IQ2_S: [256, 82],
  IQ3_XXS: [256, 98],
  IQ3_S: [256, 110],
  I8: [1, 1],
  I16: [1, 2],
  I32: [1, 4],
  I64: [1, 8],
  F64: [1, 8],
  TQ1_0: [256, 54],
  TQ2_0: [256, 66],
  NVFP4: [64, 36],
  Q1_0: [128, 18],
  Q2_0: [64, 18],
};

/** What removed ids were called, so that the owner of an old file can look it up. */
const removedNames: Readonly<Record<number, string>> = {
  4: "Q4_2",
  5: "Q4_3",
  31: "Q4_0_4_4",
  32: "Q4_0_4_8",
  33: "Q4_0_8_8",
  36: "IQ4_NL_4_4",
  37: "IQ4_NL_4_8",
  38: "IQ4_NL_8_8",
};

/** The type's name, also where zinc does not support it; "type 199" for an id from the future. */
export function typeNameOfId(id: number): string {
  return dtypeOfId(id) ?? unsupportedTypeNames[id] ?? removedNames[id] ?? `type ${id}`;
}

/** The block of a type, if it is known. */
export function blockSizeOfId(id: number): BlockSize | undefined {
  const dtype = dtypeOfId(id);
  if (dtype !== undefined) return blockFormats[dtype];
  const block = foreignBlocks[unsupportedTypeNames[id] ?? ""];
  return block && { blockValues: block[0], blockBytes: block[1] };
}

/** The type to compute with. Throws `UserError` if zinc cannot; `fileName` is for the message. */
export function requireDType(tensor: TensorInfo, fileName: string): DType {
  if (tensor.dtype !== undefined) return tensor.dtype;
  const { typeId, typeName } = tensor;
  const has = `tensor ${tensor.name} has`;
  if (removedTypeIds.has(typeId)) {
    throw badFile(
      fileName,
      `${has} type ${typeName} (id ${typeId}), which GGML has removed`,
      "pick another quantization or a newer conversion of the model",
    );
  }
  const remedy = "update zinc or pick another quantization";
  if (unsupportedTypeNames[typeId] === undefined) {
    throw badFile(fileName, `${has} the unknown type id ${typeId}`, remedy);
  }
  throw badFile(fileName, `${has} the unsupported type ${typeName} (id ${typeId})`, remedy);
}
