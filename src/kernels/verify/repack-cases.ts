/** Blocks as in a file against the same blocks laid out by the host. */
import { blockFormats, dtypes, type DType } from "../../tensor/dtype.ts";
import { planeLayout } from "../../tensor/planes.ts";
import { planesIn } from "../../tensor/tensor.ts";
import { hostBytes } from "../../vulkan/buffer.ts";
import { repack, repackBlockStep } from "../repack.ts";
import type { VerifyCase } from "./case.ts";
import { Random, randomBlocks } from "./random.ts";

function repackCase(dtype: DType): VerifyCase {
  const blockCount = 5 * repackBlockStep + 8;
  return {
    kernel: "repack",
    variant: dtype,
    name: `${blockCount} blocks in two parts`,
    bound: 0,
    run(bench) {
      const { blockBytes, blockValues } = blockFormats[dtype];
      const blocks = randomBlocks(dtype, blockCount, new Random(3));
      const valueCount = blockCount * blockValues;
      const target = bench.floats(planeLayout(dtype, valueCount).byteSize / 4);
      const planes = planesIn(target, dtype, valueCount);
      const split = 2 * repackBlockStep;
      for (const [first, end] of [
        [split, blockCount],
        [0, split],
      ] as const) {
        const source = bench.upload(blocks.subarray(first * blockBytes, end * blockBytes));
        const whole = { ...source, byteSize: (end - first) * blockBytes };
        bench.run((context) =>
          repack(context, { dtype, source: whole, planes, firstBlock: first }),
        );
      }
      const expected = bench.matrix("expected", dtype, blockCount, blockValues, blocks);
      return planes.every((plane, i) => {
        const other = expected.planes[i];
        return other !== undefined && Buffer.compare(hostBytes(plane), hostBytes(other)) === 0;
      })
        ? 0
        : Number.POSITIVE_INFINITY;
    },
  };
}

export const repackCases: readonly VerifyCase[] = dtypes.map(repackCase);
