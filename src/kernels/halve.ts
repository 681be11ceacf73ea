/** Rows of floats → halves with a step a row, normalized first if wanted: for matrix units. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { gateNumber, type GateFunction } from "./gate.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";
import type { Quantize } from "./quantize.ts";
import { rowWorkgroup, teamOf } from "./reduction.ts";

export const halveKernel = defineKernel("halve", {
  x: reads,
  weight: reads,
  up: reads,
  y: writes,
  step: reads,
  width: u32,
  parts: u32,
  epsilon: f32,
});

export interface Halve extends Quantize {
  /** A row of the step is so many rows of `width`, each with a step of its own. */
  readonly parts?: number;
  /** Eight columns of all rows after another, instead of row by row; then `y` must not be `x`. */
  readonly tiled?: boolean;
  /** act(x) ⊙ up, with `up` as `x` is; not with a norm. */
  readonly gated?: { readonly up: BufferSlice; readonly gate: GateFunction };
  /** Invocations that share a row; what suits the device by default. */
  readonly workgroup?: number;
}

/** Quads of a row that an invocation has registers for. */
const heldMax = 4;

/** As `quantize`, but `y` has each row in the room of its floats, and may be `x`. */
export function halve(context: KernelContext, args: Halve): void {
  const { x, y, width, step, rowCapacity, outputs = false, norm } = args;
  const { parts = 1, tiled = false, gated } = args;
  invariant(norm === undefined || gated === undefined, "halve: a norm and a gate");
  invariant(!tiled || x.buffer !== y.buffer || x.offset !== y.offset, "halve: tiles where x is");
  invariant(width % 16 === 0, `halve: width ${width} is no multiple of 16`);
  const { reduction, subgroupSize } = teamOf(context);
  const { workgroup = rowWorkgroup(context, width, rowCapacity) } = args;
  const held = ceilDiv(width / 4, workgroup);
  launch(context, halveKernel, {
    shader: `halve.${reduction}`,
    constants: [
      workgroup,
      norm === undefined ? 0 : 1,
      outputs ? 1 : 0,
      tiled ? 1 : 0,
      gated === undefined ? 0 : 1,
      gateNumber(gated?.gate ?? "silu"),
      held <= heldMax ? held : 0,
    ],
    subgroupSize,
    parameters: {
      x,
      y,
      step,
      width,
      parts,
      epsilon: norm?.epsilon ?? 0,
      ...(norm && { weight: norm.weight.data }),
      ...(gated && { up: gated.up }),
    },
    groups: [rowCapacity * parts],
    label: norm ? `norm ${norm.weight.name}` : gated ? `${gated.gate} gate` : "halve",
  });
}

/** The same in tiles. */
export function halveInTiles(context: KernelContext, args: Omit<Halve, "tiled">): void {
  halve(context, { ...args, tiled: true });
}
