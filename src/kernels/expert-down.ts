/** Down products of the experts that a router chose, summed by their weights. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import type { ExpertActivation } from "./activations.ts";
import { expertDownContest, isMeasured, type ExpertTuning } from "./expert-contest.ts";
import { defineKernel, launch, matrix, reads, updates, type KernelContext } from "./kernel.ts";
import { preparedRows } from "./linear.ts";
import { teamOf } from "./reduction.ts";
import type { ShaderName } from "./shaders.ts";

export const expertDownKernel = defineKernel("expert_down", {
  down: matrix,
  x: reads,
  aside: reads,
  y: updates,
  choices: reads,
  bias: reads,
  step: reads,
  slots: u32,
  rows: u32,
});

export interface ExpertDown {
  /** [experts · rows, width] */
  readonly down: Matrix;
  /** [experts · rows] */
  readonly bias?: Vector | undefined;
  readonly experts: number;
  /** [rowCapacity, slots, width], as `activation` says. */
  readonly x: BufferSlice;
  readonly activation: ExpertActivation;
  /** [rowCapacity, rows], added to unless `accumulate` is false. */
  readonly y: BufferSlice;
  readonly accumulate?: boolean;
  /** From `expertChoice`. */
  readonly choices: BufferSlice;
  /** Experts of a row. */
  readonly slots: number;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly tuning?: ExpertTuning | undefined;
}

export function expertDown(context: KernelContext, args: ExpertDown): void {
  const { down, experts, x, activation, y, choices, slots, step, rowCapacity } = args;
  const { bias, accumulate = true } = args;
  const { columns: width } = down;
  const rows = down.rows / experts;
  invariant(Number.isInteger(rows), `${down.name}: ${down.rows} rows of ${experts} experts`);
  invariant(bias === undefined || bias.length === down.rows, `${down.name}: ${bias?.name}`);
  invariant(x.byteSize >= rowCapacity * slots * width * 4, `${down.name}: x is too small`);
  const { reduction, lanes, subgroupSize } = teamOf(context);
  const { rows: teamRows, subgroups } = args.tuning ?? tuningOf(context, args);
  launch(context, expertDownKernel, {
    shader: `expert_down.${down.dtype}.${reduction}.${activation}` as ShaderName,
    constants: [
      lanes * subgroups,
      lanes,
      teamRows,
      width,
      accumulate ? 1 : 0,
      bias === undefined ? 0 : 1,
    ],
    subgroupSize,
    parameters: {
      down,
      ...preparedRows(x, activation, rowCapacity * slots, width),
      y,
      choices,
      ...(bias && { bias: bias.data }),
      step,
      slots,
      rows,
    },
    groups: [ceilDiv(rows, teamRows * subgroups), rowCapacity],
    label: down.name,
  });
}

const usualTuning: ExpertTuning = { rows: 2, subgroups: 1 };

/** The measured one, if its work for one row was measured. */
function tuningOf(context: KernelContext, args: ExpertDown): ExpertTuning {
  if (!isMeasured(context, args)) return usualTuning;
  return context.tunings.choose(expertDownContest(context, args, usualTuning, expertDown));
}
