/** What every dequantizer is: one block in, its values out. */
import { halfToFloat } from "../half.ts";

/** Writes the values of the block at byte `at` to `out`, from index `to` on. */
export type BlockDequantizer = (view: DataView, at: number, out: Float32Array, to: number) => void;

/** The half at byte `at`. */
export function readHalf(view: DataView, at: number): number {
  return halfToFloat(view.getUint16(at, true));
}

/** Nibble 0 is the low one. */
export function readNibble(view: DataView, at: number, which: number): number {
  return (view.getUint8(at) >> (4 * which)) & 15;
}
