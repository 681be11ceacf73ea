/** Layouts of linear layers that may be measured against each other. No device is needed. */
import { describe, expect, test } from "bun:test";
import type { KernelContext } from "../../src/kernels/kernel.ts";
import { defaultTuning, type Linear, type LinearTuning } from "../../src/kernels/linear.ts";
import { linearCandidates, linearContest } from "../../src/kernels/linear-contest.ts";
import { Tunings } from "../../src/kernels/tunings.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import type { BufferSlice, DeviceBuffer } from "../../src/vulkan/buffer.ts";
import type { Capabilities } from "../../src/vulkan/capabilities.ts";
import type { Pipelines } from "../../src/vulkan/pipeline.ts";
import type { Program } from "../../src/vulkan/program.ts";
import { fakeDevice } from "../helpers/fake-device.ts";

const nowhere: BufferSlice = { buffer: {} as DeviceBuffer, offset: 0, byteSize: 0 };

function contextOf(capabilities: Capabilities): KernelContext {
  return { program: {} as Program, pipelines: {} as Pipelines, capabilities };
}

const context = contextOf(fakeDevice());

function matrix(dtype: DType, rows: number, columns: number) {
  return { name: "w", dtype, rows, columns, planes: [nowhere] };
}

function layer(dtype: DType, rows: number, columns: number, more: Partial<Linear> = {}): Linear {
  const [x, y, step] = [nowhere, nowhere, nowhere];
  const w = matrix(dtype, rows, columns);
  return { w, x, y, step, activation: "int8", rowCapacity: 1, ...more };
}

function normOf(length: number) {
  return { norm: { weight: { name: "n", length, data: nowhere }, epsilon: 1e-5 } };
}

/** "rows 2, split 1, 8 subgroups, 1 pass" in short. */
const short = ({ rows, split, subgroups, passes }: LinearTuning) =>
  `${rows} ${split} ${subgroups} ${passes}`;

function layoutsOf(args: Linear, device = context): string[] {
  return linearCandidates(device, args, defaultTuning(device, args)).map(short);
}

const gated = { up: matrix("Q4_K", 14336, 4096), gate: "silu" as const };
const quantizing = { gated, ...normOf(4096), yActivation: "int8" as const };

describe("candidates", () => {
  test("are the usual layout and its neighbours: rows, split, subgroups, passes", () => {
    expect(layoutsOf(layer("Q4_K", 1024, 4096, normOf(4096)))).toEqual([
      ...["2 2 8 1", "4 2 8 1", "1 2 8 1", "2 1 8 1", "2 2 16 1"],
      ...["2 2 4 1", "2 1 4 1", "2 2 8 2", "4 1 8 1"],
    ]);
  });

  test("share a row among as many teams as a workgroup has for it", () => {
    expect(layoutsOf(layer("Q4_K", 4096, 4096))).toEqual([
      ...["2 1 1 1", "4 1 1 1", "1 1 1 1", "2 2 2 1", "2 1 2 1", "2 1 1 2", "1 2 2 1", "2 1 4 1"],
    ]);
  });

  test("that quantize take whole blocks of 32 results", () => {
    const layouts = linearCandidates(
      context,
      layer("Q4_K", 14336, 4096, quantizing),
      defaultTuning(context, layer("Q4_K", 14336, 4096, quantizing)),
    );
    expect(layouts.map(short)).toEqual([
      ...["2 1 8 2", "4 1 8 1", "1 1 8 4", "2 2 8 4", "2 1 16 1", "2 1 4 4", "2 1 8 4", "1 2 8 8"],
    ]);
    const rows = layouts.map(({ rows, split = 1, subgroups, passes }) => {
      return (subgroups / split) * rows * passes;
    });
    expect(rows).toEqual([32, 32, 32, 32, 32, 32, 64, 32]);
  });

  test("do without idle teams where rows are short and few", () => {
    expect(layoutsOf(layer("Q8_0", 4, 128))).toEqual(["2 1 1 1", "1 1 1 1"]);
  });

  test("stay within the invocations and the shared memory of the device", () => {
    const { limits } = fakeDevice();
    const small = { ...limits, workgroupInvocations: 256, sharedMemoryBytes: 16384 };
    const device = contextOf(fakeDevice({ limits: small }));
    const args = layer("Q4_K", 4096, 4096, normOf(4096));
    expect(layoutsOf(args)).toContain("2 1 16 1");
    expect(layoutsOf(args, device)).toEqual([
      ...["2 1 8 1", "4 1 8 1", "1 1 8 1", "2 2 8 1", "2 1 4 1", "2 1 8 2", "1 2 8 1"],
    ]);
    const floats = layer("F16", 4096, 4096, { ...normOf(4096), activation: "float" });
    expect(layoutsOf(floats, device)).toHaveLength(1);
  });

  test("are ten at most", () => {
    const args = layer("F16", 4096, 14336, { activation: "float" });
    expect(layoutsOf(args)).toHaveLength(10);
  });
});

describe("a contest", () => {
  const contestOf = (args: Linear) =>
    linearContest(context, args, defaultTuning(context, args), () => {});

  test.each([
    [layer("Q6_K", 4096, 14336), "linear Q6_K 4096x14336, of int8, to float"],
    [
      layer("Q4_K", 14336, 4096, quantizing),
      "linear Q4_K 14336x4096 gated by silu, of normed int8, to int8",
    ],
    [
      layer("F16", 70, 256, {
        activation: "float",
        norm: { ...normOf(32).norm, gate: nowhere },
        accumulate: true,
      }),
      "linear F16 70x256, of normed float heads of 32, to float",
    ],
  ])("is named by what its layout depends on", (args, key) => {
    expect(contestOf(args).key).toBe(key);
  });

  test("counts both matrices of a gate", () => {
    const planes = [{ ...nowhere, byteSize: 1000 }];
    const w = { ...matrix("Q4_K", 64, 256), planes };
    expect(contestOf(layer("Q4_K", 64, 256, { w })).weightBytes).toBe(1000);
    const both = layer("Q4_K", 64, 256, { w, gated: { up: w, gate: "silu" } });
    expect(contestOf(both).weightBytes).toBe(2000);
  });
});

describe("measured layouts", () => {
  const args = layer("Q4_K", 4096, 4096);
  const usual = defaultTuning(context, args);
  const contest = linearContest(context, args, usual, () => {});
  const other = { lanes: 32, rows: 4, columns: 1, subgroups: 1, passes: 1, split: 1 };

  test("are taken where they are known", () => {
    expect(new Tunings([[contest.key, other]]).choose(contest)).toEqual(other);
    expect(new Tunings([["another shape", other]]).choose(contest)).toEqual({ ...usual, split: 1 });
  });

  test("that are no candidates are as good as unknown", () => {
    const tunings = new Tunings([[contest.key, { ...other, rows: 3 }]]);
    expect(tunings.knows(contest)).toBe(false);
    expect(tunings.choose(contest)).toEqual({ ...usual, split: 1 });
  });

  test("are asked for where somebody listens", () => {
    const tunings = new Tunings();
    tunings.choose(contest);
    const heard = tunings.listen(() => {
      tunings.choose(contest);
      tunings.choose(contest);
    });
    tunings.choose(contest);
    expect(heard).toEqual([contest, contest]);
  });
});
