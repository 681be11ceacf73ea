/**
 * How the blocks of a type lie in device memory. Types whose blocks keep 16-byte alignment stay as
 * in the file; of the others, each field becomes a plane of its own, so that kernels load aligned
 * words. No byte is added or lost.
 */
import { roundUp } from "../math.ts";
import { blockFormats, type DType } from "./dtype.ts";

/** A run of bytes of each block in the file that becomes a plane. */
export interface Field {
  readonly offset: number;
  readonly byteSize: number;
}

/**
 * The planes of each type, in the order in which `shaders/include/quant/*.glsl` takes them; at most
 * three.
 */
const fields = {
  F32: [whole("F32")],
  F16: [whole("F16")],
  BF16: [whole("BF16")],
  Q4_0: [
    { offset: 2, byteSize: 16 },
    { offset: 0, byteSize: 2 },
  ],
  Q4_1: [
    { offset: 4, byteSize: 16 },
    { offset: 0, byteSize: 4 },
  ],
  Q5_0: [
    { offset: 6, byteSize: 16 },
    { offset: 2, byteSize: 4 },
    { offset: 0, byteSize: 2 },
  ],
  Q5_1: [
    { offset: 8, byteSize: 16 },
    { offset: 0, byteSize: 8 },
  ],
  Q8_0: [
    { offset: 2, byteSize: 32 },
    { offset: 0, byteSize: 2 },
  ],
  Q2_K: [
    { offset: 0, byteSize: 80 },
    { offset: 80, byteSize: 4 },
  ],
  Q3_K: [
    { offset: 0, byteSize: 96 },
    { offset: 96, byteSize: 12 },
    { offset: 108, byteSize: 2 },
  ],
  Q4_K: [whole("Q4_K")],
  Q5_K: [whole("Q5_K")],
  Q6_K: [
    { offset: 0, byteSize: 208 },
    { offset: 208, byteSize: 2 },
  ],
  IQ4_NL: [
    { offset: 2, byteSize: 16 },
    { offset: 0, byteSize: 2 },
  ],
  IQ4_XS: [
    { offset: 8, byteSize: 128 },
    { offset: 0, byteSize: 8 },
  ],
  MXFP4: [
    { offset: 1, byteSize: 16 },
    { offset: 0, byteSize: 1 },
  ],
} as const satisfies Record<DType, readonly Field[]>;

function whole(dtype: DType): Field {
  return { offset: 0, byteSize: blockFormats[dtype].blockBytes };
}

export function planeFields(dtype: DType): readonly Field[] {
  return fields[dtype];
}

/** Kernels read 16 bytes at a time, and planes of bytes and halves end in the middle of a word. */
const planeAlignment = 16;

export interface PlaneLayout {
  /** Offset and size of each plane from the start of the tensor, in bytes. */
  readonly planes: readonly { readonly offset: number; readonly byteSize: number }[];
  readonly byteSize: number;
}

/** Where the planes of a tensor of `valueCount` values lie. */
export function planeLayout(dtype: DType, valueCount: number): PlaneLayout {
  const blockCount = valueCount / blockFormats[dtype].blockValues;
  let end = 0;
  const planes = planeFields(dtype).map((field) => {
    const offset = roundUp(end, planeAlignment);
    end = offset + blockCount * field.byteSize;
    return { offset, byteSize: blockCount * field.byteSize };
  });
  return { planes, byteSize: roundUp(end, planeAlignment) };
}
