/** Gate and up products of the experts that a router chose, with their activation. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { gateNumber, type GateFunction } from "./gate.ts";
import { defineKernel, launch, matrix, reads, writes, type KernelContext } from "./kernel.ts";
import { rowLanes } from "./linear.ts";
import { teamOf } from "./reduction.ts";

export const expertGateUpKernel = defineKernel("expert_gate_up", {
  gate: matrix,
  up: matrix,
  x: reads,
  y: writes,
  choices: reads,
  gateBias: reads,
  upBias: reads,
  step: reads,
  slots: u32,
  rows: u32,
  width: u32,
  expertRows: u32,
  upRow: u32,
});

export interface ExpertGateUp {
  /** [experts · rows, width], or [experts · (gate rows | up rows), width] without `up`. */
  readonly gate: Matrix;
  /** [experts · rows, width], of the type of `gate`. */
  readonly up?: Matrix | undefined;
  /** Leaves activation and up product out: y = Gate · x. */
  readonly alone?: boolean;
  /** Of the gate; SiLU by default. */
  readonly activation?: GateFunction;
  /** As many values as `gate` has rows. */
  readonly gateBias?: Vector | undefined;
  /** The same for `up`; in `gateBias` where both are one tensor. */
  readonly upBias?: Vector | undefined;
  readonly experts: number;
  /** [rowCapacity, width] */
  readonly x: BufferSlice;
  /** [rowCapacity, slots, rows], written. */
  readonly y: BufferSlice;
  /** From `expertChoice`. */
  readonly choices: BufferSlice;
  /** Experts of a row. */
  readonly slots: number;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
}

export function expertGateUp(context: KernelContext, args: ExpertGateUp): void {
  const { gate, up = gate, alone = false, experts, x, y, choices, slots, step } = args;
  const { rowCapacity, activation = "silu", gateBias, upBias = gateBias } = args;
  const expertRows = gate.rows / experts;
  const isMerged = args.up === undefined && !alone;
  const rows = isMerged ? expertRows / 2 : expertRows;
  invariant(Number.isInteger(rows), `${gate.name}: ${gate.rows} rows of ${experts} experts`);
  invariant(
    up.dtype === gate.dtype && up.rows === gate.rows && up.columns === gate.columns,
    `${gate.name} and ${up.name} differ`,
  );
  for (const bias of [gateBias, upBias]) {
    invariant(bias === undefined || bias.length === gate.rows, `${gate.name}: ${bias?.name}`);
  }
  invariant(y.byteSize >= rowCapacity * slots * rows * 4, `${gate.name}: y is too small`);
  const { reduction, lanes: workgroup, subgroupSize } = teamOf(context);
  const lanes = rowLanes(gate, workgroup);
  launch(context, expertGateUpKernel, {
    shader: `expert_gate_up.${gate.dtype}.${reduction}`,
    constants: [
      workgroup,
      lanes,
      alone ? 1 : 0,
      gateNumber(activation),
      gateBias === undefined ? 0 : 1,
    ],
    subgroupSize,
    parameters: {
      gate,
      up,
      x,
      y,
      choices,
      ...(gateBias && { gateBias: gateBias.data }),
      ...(upBias && { upBias: upBias.data }),
      step,
      slots,
      rows,
      width: gate.columns,
      expertRows,
      upRow: isMerged ? rows : 0,
    },
    groups: [ceilDiv(rows * lanes, workgroup), slots, rowCapacity],
    label: gate.name,
  });
}
