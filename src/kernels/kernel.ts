/**
 * What a kernel is: a shader, and its parameters declared in the order of the shader's push
 * constants. A parameter's kind says how its memory is accessed, and barriers follow from that.
 */
import { invariant, InvariantError } from "../errors.ts";
import type { Matrix } from "../tensor/tensor.ts";
import type { Capabilities } from "../vulkan/capabilities.ts";
import type { Arena } from "../vulkan/arena.ts";
import { addressOf, type BufferSlice } from "../vulkan/buffer.ts";
import {
  struct,
  type Field,
  type Input,
  type Struct,
  type StructFields,
} from "../vulkan/layout.ts";
import type { Pipelines } from "../vulkan/pipeline.ts";
import type { Groups, Program } from "../vulkan/program.ts";
import type { ActivationKind } from "./activations.ts";
import { spirvOf } from "./module.ts";
import type { Reduction } from "./reduction.ts";
import type { ShaderName } from "./shaders.ts";
import type { Tunings } from "./tunings.ts";

/** Everything that appending a dispatch needs. */
export interface KernelContext {
  readonly program: Program;
  readonly pipelines: Pipelines;
  readonly capabilities: Capabilities;
  /** Layouts that were measured; without, each kernel follows its own rule. */
  readonly tunings?: Tunings | undefined;
  /** Overrules what the device would get: for checking the other variants on it. */
  readonly force?: {
    readonly reduction?: Reduction;
    readonly subgroupSize?: number;
    readonly activation?: ActivationKind;
  };
}

/** What a layout is chosen by. */
export type DeviceContext = Pick<KernelContext, "capabilities" | "force">;

type AccessKind = "read" | "write" | "update";

interface AccessField<In> extends Field<In> {
  readonly access: AccessKind;
}

function addressField(access: AccessKind): AccessField<BufferSlice> {
  return {
    access,
    byteSize: 8,
    alignment: 8,
    write: (arena: Arena, at, slice) => arena.view.setBigUint64(at, addressOf(slice), true),
    read: neverRead,
  };
}

function neverRead(): never {
  throw new InvariantError("push constants are not read back");
}

/**
 * Parameters that are buffers; one that is left out is a null address, which the shader must not
 * touch.
 */
export const reads = addressField("read");
export const writes = addressField("write");
export const updates = addressField("update");

/** The three plane addresses of a `Weights` struct. */
export const matrix: AccessField<Matrix> = {
  access: "read",
  byteSize: 24,
  alignment: 8,
  write(arena: Arena, at, value) {
    value.planes.forEach((plane, i) => arena.view.setBigUint64(at + 8 * i, addressOf(plane), true));
  },
  read: neverRead,
};

export interface Kernel<P extends StructFields> {
  readonly name: string;
  readonly parameters: Struct<P>;
}

/** `name` is the shader's file name. */
export function defineKernel<const P extends StructFields>(name: string, parameters: P): Kernel<P> {
  return { name, parameters: struct(name, parameters) };
}

export interface Launch<P extends StructFields> {
  /** The module of the kernel to use: its name and axis values. */
  readonly shader: ShaderName;
  readonly constants: readonly number[];
  readonly subgroupSize?: number | undefined;
  readonly parameters: Input<P>;
  readonly groups: Groups;
  /** What it is for, in profiles and messages. */
  readonly label: string;
}

/** Appends one dispatch of a kernel to the program. */
export function launch<P extends StructFields>(
  { program, pipelines }: KernelContext,
  kernel: Kernel<P>,
  { shader, constants, subgroupSize, parameters, groups, label }: Launch<P>,
): void {
  invariant(shader.split(".")[0] === kernel.name, `${shader} is not a variant of ${kernel.name}`);
  const { arena } = pipelines.device;
  using _ = arena.frame();
  const placed = arena.place(kernel.parameters, parameters);
  program.dispatch({
    pipeline: pipelines.get({
      name: shader,
      spirv: spirvOf(shader),
      constants,
      ...(subgroupSize === undefined ? {} : { subgroupSize }),
    }),
    pushConstants: arena.bytes.subarray(placed.offset, placed.offset + kernel.parameters.byteSize),
    groups,
    label,
    ...accesses(kernel, parameters),
  });
}

function accesses<P extends StructFields>(kernel: Kernel<P>, parameters: Input<P>) {
  const read: BufferSlice[] = [];
  const written: BufferSlice[] = [];
  for (const [name, field] of Object.entries(kernel.parameters.fields)) {
    const value = parameters[name] as BufferSlice | Matrix | undefined;
    if (!("access" in field) || value === undefined) continue;
    const slices = "planes" in value ? value.planes : [value];
    if (field.access !== "write") read.push(...slices);
    if (field.access !== "read") written.push(...slices);
  }
  return { reads: read, writes: written };
}
