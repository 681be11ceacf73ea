/**
 * How a device's matrix units lay out their operands. Vulkan leaves it to drivers, so a kernel
 * asks: where it is as expected, `matmulDirect` fills fragments without a detour through shared
 * memory.
 */
import { DeviceBuffer, hostBytes } from "../vulkan/buffer.ts";
import type { Capabilities } from "../vulkan/capabilities.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { defineKernel, launch, writes } from "./kernel.ts";
import { matrixUnitsOf } from "./matrix-units.ts";

export const fragmentProbeKernel = defineKernel("fragment_probe", { y: writes });

const lanes = 32;
/** Values of an operand that an invocation holds, at most. */
const held = 8;
/** Weights [16, 16], activations [16, 16] and [16, 8]. */
const operandHeld = [8, 8, 4] as const;

/** What was found out about devices that are open. */
const known = new WeakMap<Capabilities, boolean>();

/** Finds out whether `holdsQuads`; to be called before passes are recorded. */
export function probeFragments(gpu: Gpu): void {
  const { device, pipelines } = gpu;
  const { capabilities } = device;
  if (known.has(capabilities)) return;
  known.set(capabilities, false);
  if (!hasShapes(capabilities)) return;
  const floats = operandHeld.length * lanes * (held + 1);
  const buffer = new DeviceBuffer(device, floats * 4, "readback", "the layout of fragments");
  try {
    const y = buffer.slice();
    gpu.run("fragments", (program) =>
      launch({ program, pipelines, capabilities }, fragmentProbeKernel, {
        shader: "fragment_probe",
        constants: [],
        subgroupSize: matrixUnitsOf(capabilities)?.subgroupSize,
        parameters: { y },
        groups: [1],
        label: "fragments",
      }),
    );
    const found = new Float32Array(hostBytes(y).slice(0, floats * 4).buffer);
    known.set(capabilities, areQuads(found));
  } finally {
    buffer.free();
  }
}

/**
 * Whether of each row of weights, and of each column of activations, four neighbouring invocations
 * hold a quad each: invocation 4r + s one of row r and, after it, one of row r + 8. False as long
 * as nobody has asked the device.
 */
export function holdsQuads(capabilities: Capabilities): boolean {
  return known.get(capabilities) ?? false;
}

function hasShapes(capabilities: Capabilities): boolean {
  const units = matrixUnitsOf(capabilities);
  if (units === undefined || capabilities.kind === "cpu" || units.lanes !== lanes) return false;
  return [16, 8].every((columns) =>
    capabilities.cooperativeMatrices.some(
      ({ m, n, k, operands, accumulator }) =>
        m === 16 && n === columns && k === 16 && operands === "f16" && accumulator === "f32",
    ),
  );
}

/**
 * `found`: of each operand and invocation the number of values held, then the values themselves,
 * which count 16 · row + depth. All that hold a quad of some depths must agree in which.
 */
export function areQuads(found: Float32Array): boolean {
  return operandHeld.every((count, operand) =>
    Array.from({ length: lanes }, (_, lane) => {
      const at = (operand * lanes + lane) * (held + 1);
      const [row, share] = [Math.floor(lane / 4), lane % 4];
      const depths = [2 * share, 2 * share + 1, 2 * share + 8, 2 * share + 9];
      const expected = depths.map((depth) => 16 * row + depth);
      if (count === 8) expected.push(...expected.map((value) => value + 16 * 8));
      return found[at] === count && expected.every((value, i) => found[at + 1 + i] === value);
    }).every(Boolean),
  );
}
