/** Units of weights: what the quantizations' readers in shaders/include/quant take at once. */
import { blockFormats, type DType } from "../tensor/dtype.ts";

/** Values that one invocation reads at once (UNIT_VALUES of shaders/include/quant). */
export function unitValues(dtype: DType): number {
  const { blockValues } = blockFormats[dtype];
  if (blockValues === 1) return 8;
  return blockValues === 32 || dtype === "IQ4_XS" ? 32 : 64;
}
