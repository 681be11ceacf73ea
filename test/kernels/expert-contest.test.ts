/** Layouts of experts' products that may be measured against each other. No device is needed. */
import { describe, expect, test } from "bun:test";
import {
  expertCandidates,
  expertDownContest,
  expertGateUpContest,
  isMeasured,
  type ExpertTuning,
} from "../../src/kernels/expert-contest.ts";
import type { KernelContext } from "../../src/kernels/kernel.ts";
import { Tunings } from "../../src/kernels/tunings.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import type { BufferSlice, DeviceBuffer } from "../../src/vulkan/buffer.ts";
import type { Pipelines } from "../../src/vulkan/pipeline.ts";
import type { Program } from "../../src/vulkan/program.ts";
import { fakeDevice } from "../helpers/fake-device.ts";

const capabilities = fakeDevice();
const nowhere: BufferSlice = { buffer: {} as DeviceBuffer, offset: 0, byteSize: 1024 };

/** "2×16": rows of a team and subgroups. */
function layoutsOf(results: number, usual: ExpertTuning, device = capabilities): string[] {
  const candidates = expertCandidates({ capabilities: device }, results, usual);
  return candidates.map(({ rows, subgroups }) => `${rows}×${subgroups}`);
}

function matrix(dtype: DType, rows: number, columns: number) {
  return { name: "w", dtype, rows, columns, planes: [nowhere] };
}

describe("candidates", () => {
  test("are the usual layout and its neighbours: rows and subgroups", () => {
    expect(layoutsOf(512, { rows: 2, subgroups: 1 })).toEqual([
      ...["2×1", "4×1", "1×1", "2×2", "2×4", "1×2"],
    ]);
  });

  test("stay within a workgroup", () => {
    expect(layoutsOf(512, { rows: 2, subgroups: 16 })).toEqual([
      ...["2×16", "4×16", "1×16", "2×8", "2×4", "4×8"],
    ]);
    const limits = { ...capabilities.limits, workgroupInvocations: 64 };
    expect(layoutsOf(512, { rows: 2, subgroups: 1 }, fakeDevice({ limits }))).toEqual([
      ...["2×1", "4×1", "1×1", "2×2", "1×2"],
    ]);
  });

  test("leave no team idle where results are few", () => {
    expect(layoutsOf(3, { rows: 2, subgroups: 1 })).toEqual(["2×1", "1×1", "1×2"]);
  });
});

describe("a contest", () => {
  const common = {
    ...{ experts: 256, slots: 8, rowCapacity: 1, choices: nowhere, step: nowhere },
    ...{ x: nowhere, y: nowhere, activation: "int8" as const },
  };
  const usual = { rows: 2, subgroups: 1 };

  test("of gate and up is named by its shape, and counts the experts of a row", () => {
    const gate = matrix("Q4_K", 256 * 512, 2048);
    const args = { ...common, gate, up: gate, yActivation: "int8" as const, results: 512 };
    const contest = expertGateUpContest({ capabilities }, args, usual, () => {});
    expect(contest.key).toBe("expert_gate_up Q4_K 8 of 256 512x2048 apart, of int8, to int8");
    expect(contest.weightBytes).toBe(64);
    expect([contest.inputBytes, contest.outputBytes]).toEqual([8192, 16384]);
  });

  test("of down products takes a row for each expert", () => {
    const args = { ...common, down: matrix("Q5_K", 256 * 2048, 512) };
    const contest = expertDownContest({ capabilities }, args, usual, () => {});
    expect(contest.key).toBe("expert_down Q5_K 8 of 256 2048x512, of int8");
    expect(contest.weightBytes).toBe(32);
    expect([contest.inputBytes, contest.outputBytes]).toEqual([16384, 8192]);
  });

  test("is held for one row where somebody measures", () => {
    const context = { program: {} as Program, pipelines: {} as Pipelines, capabilities };
    const measuring: KernelContext = { ...context, tunings: new Tunings() };
    expect(isMeasured(measuring, { rowCapacity: 1, slots: 8 })).toBe(true);
    expect(isMeasured(measuring, { rowCapacity: 2, slots: 8 })).toBe(false);
    expect(isMeasured(measuring, { rowCapacity: 1, slots: 65 })).toBe(false);
    expect(isMeasured(context, { rowCapacity: 1, slots: 8 })).toBe(false);
  });
});
