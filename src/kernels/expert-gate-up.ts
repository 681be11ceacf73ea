/** Gate and up products of the experts that a router chose, with their activation. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import type { ExpertActivation } from "./activations.ts";
import { expertGateUpContest, isMeasured, type ExpertTuning } from "./expert-contest.ts";
import { tileCapacityOf } from "./expert-order.ts";
import { gateNumber, type GateFunction } from "./gate.ts";
import {
  defineKernel,
  launch,
  matrix,
  reads,
  writes,
  type DeviceContext,
  type KernelContext,
} from "./kernel.ts";
import { preparedRows, resultRows, rowLanes } from "./linear.ts";
import { teamOf } from "./reduction.ts";
import type { ShaderName } from "./shaders.ts";
import { unitValues } from "./unit-values.ts";

export const expertGateUpKernel = defineKernel("expert_gate_up", {
  gate: matrix,
  up: matrix,
  x: reads,
  aside: reads,
  y: writes,
  ySteps: writes,
  choices: reads,
  gateBias: reads,
  upBias: reads,
  step: reads,
  slots: u32,
  rows: u32,
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
  readonly gateFunction?: GateFunction;
  /** As many values as `gate` has rows. */
  readonly gateBias?: Vector | undefined;
  /** The same for `up`; in `gateBias` where both are one tensor. */
  readonly upBias?: Vector | undefined;
  readonly experts: number;
  /** [rowCapacity, width] or, with `apart`, [rowCapacity, slots, width], as `activation` says. */
  readonly x: BufferSlice;
  /** Each choice has a row of `x` of its own; only of sorted ones. */
  readonly apart?: boolean;
  readonly activation: ExpertActivation;
  /** [rowCapacity, slots, rows], written. */
  readonly y: BufferSlice;
  /** What the next product reads `y` as; codes only for rows in blocks of 32. */
  readonly yActivation?: ExpertActivation;
  /** From `expertChoice`; from `expertOrder` with a `tile`. */
  readonly choices: BufferSlice;
  /** Choices are sorted, and as many of one expert share its weights. */
  readonly tile?: number | undefined;
  /** Experts of a row. */
  readonly slots: number;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly tuning?: ExpertTuning | undefined;
}

/** Results of a workgroup that leave as codes. */
const quantizedRows = 32;

export function expertGateUp(context: KernelContext, args: ExpertGateUp): void {
  const { gate, up = gate, alone = false, experts, choices, slots, step, rowCapacity } = args;
  const { activation, yActivation = "float", gateFunction = "silu" } = args;
  const { gateBias, upBias = gateBias, tile, apart = false } = args;
  const expertRows = gate.rows / experts;
  const isMerged = args.up === undefined && !alone;
  const rows = isMerged ? expertRows / 2 : expertRows;
  const quantizes = yActivation === "int8";
  check(args, rows);
  const team = teamOf(context);
  const lanes = rowLanes(gate, team.lanes);
  const tuning = args.tuning ?? tuningOf(context, { ...args, results: rows });
  const layout = layoutOf(tuning, quantizes, team.lanes / lanes);
  const turns = ceilDiv(rows, layout.workgroupRows);
  launch(context, expertGateUpKernel, {
    shader: `expert_gate_up.${gate.dtype}.${team.reduction}.${activation}` as ShaderName,
    constants: [
      team.lanes * layout.subgroups,
      lanes,
      layout.rows,
      layout.passes,
      gate.columns,
      alone ? 1 : 0,
      quantizes ? 1 : 0,
      gateNumber(gateFunction),
      gateBias === undefined ? 0 : 1,
      tile ?? 1,
      tile === undefined ? 0 : 1,
    ],
    subgroupSize: team.subgroupSize,
    parameters: {
      gate,
      up,
      ...preparedRows(args.x, activation, rowCapacity * (apart ? slots : 1), gate.columns),
      ...resultRows(args.y, quantizes, rowCapacity * slots, rows),
      choices,
      ...(gateBias && { gateBias: gateBias.data }),
      ...(upBias && { upBias: upBias.data }),
      step,
      slots: apart ? 1 : slots,
      rows,
      expertRows,
      upRow: isMerged ? rows : 0,
    },
    groups:
      tile === undefined ? [turns, slots, rowCapacity] : [turns, tileCapacityOf({ ...args, tile })],
    label: gate.name,
  });
}

function check(args: ExpertGateUp, rows: number): void {
  const { gate, up = gate, gateBias, upBias, y, yActivation, rowCapacity, slots } = args;
  invariant(Number.isInteger(rows), `${gate.name}: ${gate.rows} rows of ${args.experts} experts`);
  invariant(
    up.dtype === gate.dtype && up.rows === gate.rows && up.columns === gate.columns,
    `${gate.name} and ${up.name} differ`,
  );
  for (const bias of [gateBias, upBias]) {
    invariant(bias === undefined || bias.length === gate.rows, `${gate.name}: ${bias?.name}`);
  }
  invariant(y.byteSize >= rowCapacity * slots * rows * 4, `${gate.name}: y is too small`);
  invariant(args.tile !== undefined || !args.apart, `${gate.name}: rows apart are not sorted`);
  invariant(yActivation !== "int8" || rows % quantizedRows === 0, `${gate.name}: codes of ${rows}`);
}

/** The measured one, if its work for one row was measured. */
function tuningOf(
  context: KernelContext,
  args: ExpertGateUp & { readonly results: number },
): ExpertTuning {
  const usual = usualTuning(context, args);
  if (args.tile !== undefined || !isMeasured(context, args)) return usual;
  return context.tunings.choose(expertGateUpContest(context, args, usual, expertGateUp));
}

function usualTuning({ capabilities }: DeviceContext, args: ExpertGateUp): ExpertTuning {
  const { gate, alone = false, activation, yActivation, tile = 1 } = args;
  const isCpu = capabilities.kind === "cpu";
  const quantizes = yActivation === "int8";
  // Two matrices with long units fill the registers, and so do several columns.
  const isLong = activation === "float" && unitValues(gate.dtype) === 64;
  const isHeavy = tile > 1 ? activation === "float" || !alone : !alone && isLong;
  // As many subgroups as do it in one turn.
  return { rows: isHeavy && !isCpu ? 1 : 2, subgroups: quantizes && !isCpu ? 16 : 1 };
}

/** Side by side in a workgroup: subgroups, results of a team; and turns. */
function layoutOf({ rows, subgroups }: ExpertTuning, quantizes: boolean, subgroupTeams: number) {
  const turnRows = rows * subgroups * subgroupTeams;
  const passes = quantizes ? Math.max(1, quantizedRows / turnRows) : 1;
  return { rows, subgroups, passes, workgroupRows: turnRows * passes };
}
