/**
 * Blocks of every type to float32, in plain loops: the reference that kernels are checked against.
 * Exact: the products of a formula fit a double, so the only rounding is the last one, as in
 * llama.cpp's float code.
 */
import { invariant } from "../errors.ts";
import type { BlockDequantizer } from "./dequantize/block.ts";
import { iq4nl, iq4xs, mxfp4 } from "./dequantize/codebook.ts";
import { q2k, q3k, q4k, q5k, q6k } from "./dequantize/k-quants.ts";
import { bf16, f16, f32, q40, q41, q50, q51, q80 } from "./dequantize/simple.ts";
import { blockFormats, type DType } from "./dtype.ts";

const dequantizers: Readonly<Record<DType, BlockDequantizer>> = {
  F32: f32,
  F16: f16,
  BF16: bf16,
  Q4_0: q40,
  Q4_1: q41,
  Q5_0: q50,
  Q5_1: q51,
  Q8_0: q80,
  Q2_K: q2k,
  Q3_K: q3k,
  Q4_K: q4k,
  Q5_K: q5k,
  Q6_K: q6k,
  IQ4_NL: iq4nl,
  IQ4_XS: iq4xs,
  MXFP4: mxfp4,
};

/**
 * The values of whole blocks. `out` must hold exactly that many; without it a new array is made.
 * Returns `out`.
 */
export function dequantize(
  dtype: DType,
  bytes: Uint8Array,
  out: Float32Array = new Float32Array(valueCount(dtype, bytes)),
): Float32Array {
  const { blockValues, blockBytes } = blockFormats[dtype];
  const count = valueCount(dtype, bytes);
  invariant(out.length === count, `${dtype}: ${count} values do not fit an array of ${out.length}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const block = dequantizers[dtype];
  for (let at = 0, to = 0; at < bytes.length; at += blockBytes, to += blockValues) {
    block(view, at, out, to);
  }
  return out;
}

function valueCount(dtype: DType, bytes: Uint8Array): number {
  const { blockValues, blockBytes } = blockFormats[dtype];
  const isWhole = bytes.length % blockBytes === 0;
  invariant(isWhole, `${dtype}: ${bytes.length} bytes are not whole blocks`);
  return (bytes.length / blockBytes) * blockValues;
}
