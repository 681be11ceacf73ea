/** The first half of a gated feed-forward: normalization, gate and up products, activation. */
import type { Matrix } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { activationKind, isLinear } from "./activations.ts";
import type { GateFunction } from "./gate.ts";
import { glu } from "./glu.ts";
import { halve } from "./halve.ts";
import type { KernelContext } from "./kernel.ts";
import { linear } from "./linear.ts";
import { matmul } from "./matmul.ts";
import { matmulDirect } from "./matmul-direct.ts";
import { quantize } from "./quantize.ts";
import { normedProductsFloats, prepareRows, type NormedRows } from "./normed-products.ts";

export interface GatedProduct extends NormedRows {
  readonly gate: Matrix;
  readonly up: Matrix;
  /** Of the gate; SiLU by default. */
  readonly gateFunction?: GateFunction | undefined;
  /** [rowCapacity, gate.rows], written as `reader` will read it. */
  readonly y: BufferSlice;
  /** The matrix of the second half. */
  readonly reader: Matrix;
  /** Scratch of `gatedProductFloats` floats a row. */
  readonly workspace: BufferSlice;
}

/** Floats of workspace a row. */
export function gatedProductFloats(width: number, feedForward: number): number {
  return normedProductsFloats(width) + 2 * feedForward;
}

/** y = act(Gate · norm(x)) ⊙ (Up · norm(x)) */
export function gatedProduct(context: KernelContext, args: GatedProduct): void {
  const { gate, up, rowCapacity, deterministic } = args;
  // More rows leave too few registers for two matrices.
  const isFew = rowCapacity <= 2 || deterministic || context.capabilities.kind === "cpu";
  const fuses =
    isFew && gate.dtype === up.dtype && isLinear(context, { w: gate, rowCapacity, deterministic });
  if (fuses) gatedLinear(context, args);
  else if (staysInTiles(context, args)) gatedDirect(context, args);
  else gatedInSteps(context, args);
}

/** All in one dispatch, or in two if several rows have to be normalized first. */
function gatedLinear(context: KernelContext, args: GatedProduct): void {
  const { gate, up, y, reader, step, rowCapacity, deterministic, gateFunction = "silu" } = args;
  const product = {
    w: gate,
    gated: { up, gate: gateFunction },
    activation: activationKind(context, { w: gate, rowCapacity, deterministic }),
    y,
    yActivation: activationKind(context, { w: reader, rowCapacity, deterministic }),
    step,
    rowCapacity,
  };
  if (rowCapacity === 1 && !deterministic) {
    linear(context, { ...product, x: args.x, norm: { weight: args.norm, epsilon: args.epsilon } });
  } else {
    linear(context, { ...product, x: prepareRows(context, args, [gate])(gate) });
  }
}

/** Whether one kernel reads both matrices and writes what the next of its kind reads. */
function staysInTiles(context: KernelContext, args: GatedProduct): boolean {
  const { gate, up, reader, rowCapacity, deterministic } = args;
  const isTiled = (w: Matrix) =>
    activationKind(context, { w, rowCapacity, deterministic }) === "tile";
  return gate.dtype === up.dtype && isTiled(gate) && isTiled(reader);
}

function gatedDirect(context: KernelContext, args: GatedProduct): void {
  const { gate, up, y, step, rowCapacity, gateFunction = "silu" } = args;
  const x = prepareRows(context, args, [gate])(gate);
  const gated = { up, gate: gateFunction };
  matmulDirect(context, { w: gate, gated, x, y, step, rowCapacity });
}

function gatedInSteps(context: KernelContext, args: GatedProduct): void {
  const { gate, up, y, reader, step, rowCapacity, deterministic, workspace } = args;
  const { gateFunction = "silu" } = args;
  const rows = { step, rowCapacity };
  const width = gate.rows;
  const byteSize = rowCapacity * width * 4;
  const first = rowCapacity * normedProductsFloats(gate.columns) * 4;
  const gateY = subslice(workspace, first, byteSize);
  const upY = subslice(workspace, first + byteSize, byteSize);
  const prepared = prepareRows(context, args, [gate, up]);
  matmul(context, { w: gate, x: prepared(gate), y: gateY, deterministic, ...rows });
  matmul(context, { w: up, x: prepared(up), y: upY, deterministic, ...rows });
  const kind = activationKind(context, { w: reader, rowCapacity, deterministic });
  if (kind === "half" || kind === "tile") {
    const gated = { up: upY, gate: gateFunction };
    halve(context, { x: gateY, gated, y, width, tiled: kind === "tile", ...rows });
    return;
  }
  glu(context, {
    gate: gateY,
    up: upY,
    y: kind === "int8" ? gateY : y,
    activation: gateFunction,
    width,
    ...rows,
  });
  if (kind === "int8") quantize(context, { x: gateY, y, width, ...rows });
}
