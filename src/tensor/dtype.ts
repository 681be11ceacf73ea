/**
 * The GGML types: names, ids and block sizes, as the GGUF specification lists them. One table, used
 * by the file reader, the dequantizers and the kernels. How a block is laid out inside is told in
 * `dequantize.ts`.
 */

export interface BlockFormat {
  /** The id in a GGUF tensor info. */
  readonly id: number;
  /** Values in a block. */
  readonly blockValues: number;
  /** Bytes of a block in the file. */
  readonly blockBytes: number;
}

export const blockFormats = {
  F32: { id: 0, blockValues: 1, blockBytes: 4 },
  F16: { id: 1, blockValues: 1, blockBytes: 2 },
  Q4_0: { id: 2, blockValues: 32, blockBytes: 18 },
  Q4_1: { id: 3, blockValues: 32, blockBytes: 20 },
  Q5_0: { id: 6, blockValues: 32, blockBytes: 22 },
  Q5_1: { id: 7, blockValues: 32, blockBytes: 24 },
  Q8_0: { id: 8, blockValues: 32, blockBytes: 34 },
  Q2_K: { id: 10, blockValues: 256, blockBytes: 84 },
  Q3_K: { id: 11, blockValues: 256, blockBytes: 110 },
  Q4_K: { id: 12, blockValues: 256, blockBytes: 144 },
  Q5_K: { id: 13, blockValues: 256, blockBytes: 176 },
  Q6_K: { id: 14, blockValues: 256, blockBytes: 210 },
  IQ4_NL: { id: 20, blockValues: 32, blockBytes: 18 },
  IQ4_XS: { id: 23, blockValues: 256, blockBytes: 136 },
  BF16: { id: 30, blockValues: 1, blockBytes: 2 },
  MXFP4: { id: 39, blockValues: 32, blockBytes: 17 },
} as const satisfies Record<string, BlockFormat>;

/** A type that zinc computes with. */
export type DType = keyof typeof blockFormats;

export const dtypes = Object.keys(blockFormats) as DType[];

/** Types that exist and that zinc does not compute with, so that an error can name them. */
export const unsupportedTypeNames: Readonly<Record<number, string>> = {
  9: "Q8_1",
  15: "Q8_K",
  16: "IQ2_XXS",
  17: "IQ2_XS",
  18: "IQ3_XXS",
  19: "IQ1_S",
  21: "IQ3_S",
  22: "IQ2_S",
  24: "I8",
  25: "I16",
  26: "I32",
  27: "I64",
  28: "F64",
  29: "IQ1_M",
  34: "TQ1_0",
  35: "TQ2_0",
  40: "NVFP4",
  41: "Q1_0",
  42: "Q2_0",
};

/** Ids that GGML once used and has removed. */
export const removedTypeIds: ReadonlySet<number> = new Set([4, 5, 31, 32, 33, 36, 37, 38]);

const byId = new Map<number, DType>(dtypes.map((dtype) => [blockFormats[dtype].id, dtype]));

/** The type of a GGUF type id, if zinc computes with it. */
export function dtypeOfId(id: number): DType | undefined {
  return byId.get(id);
}

/** Bytes of `valueCount` values, which must be whole blocks. */
export function byteSize(dtype: DType, valueCount: number): number {
  const { blockValues, blockBytes } = blockFormats[dtype];
  return (valueCount / blockValues) * blockBytes;
}
