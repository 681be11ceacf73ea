/** Kernels refuse what does not fit before anything is recorded. No device is needed for that. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import { attention, attentionPartBytes } from "../../src/kernels/attention.ts";
import { embed } from "../../src/kernels/embed.ts";
import { launch, type KernelContext } from "../../src/kernels/kernel.ts";
import { matmul } from "../../src/kernels/matmul.ts";
import { teamOf } from "../../src/kernels/reduction.ts";
import { repack } from "../../src/kernels/repack.ts";
import { rmsNorm } from "../../src/kernels/rms-norm.ts";
import { ropeCache } from "../../src/kernels/rope-cache.ts";
import { swiglu, swigluKernel } from "../../src/kernels/swiglu.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import type { BufferSlice, DeviceBuffer } from "../../src/vulkan/buffer.ts";
import type { Capabilities } from "../../src/vulkan/capabilities.ts";
import type { Pipelines } from "../../src/vulkan/pipeline.ts";
import type { Program } from "../../src/vulkan/program.ts";
import { fakeDevice } from "../helpers/fake-device.ts";

const nowhere = {} as DeviceBuffer;
const context: KernelContext = {
  program: {} as Program,
  pipelines: {} as Pipelines,
  capabilities: fakeDevice(),
};

function room(floats: number): BufferSlice {
  return { buffer: nowhere, offset: 0, byteSize: floats * 4 };
}

function matrix(dtype: DType, rows: number, columns: number) {
  return { name: "w", dtype, rows, columns, planes: [] };
}

function refusal(act: () => void): string {
  try {
    act();
  } catch (error) {
    if (error instanceof InvariantError) return error.message;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("rms norm", () => {
  test.each([6, 13])("of width %d", (length) => {
    const weight = { name: "n", length, data: room(length) };
    const act = () =>
      rmsNorm(context, {
        x: room(16),
        weight,
        y: room(16),
        step: room(8),
        rowCapacity: 1,
        epsilon: 1e-5,
      });
    expect(refusal(act)).toBe(`rmsNorm: width ${length} is no multiple of 4`);
  });
});

describe("swiglu", () => {
  test("of width 5", () => {
    const x = room(64);
    expect(
      refusal(() => swiglu(context, { gate: x, up: x, y: x, step: x, rowCapacity: 1, width: 5 })),
    ).toBe("swiglu: width 5 is no multiple of 4");
  });
});

describe("a product", () => {
  const product = { step: room(8), rowCapacity: 2 };

  test.each([
    ["Q4_K", 128],
    ["Q4_0", 48],
    ["F16", 12],
    ["F32", 4],
  ] as const)("of %s rows of %d values", (dtype, columns) => {
    const w = matrix(dtype, 4, columns);
    expect(refusal(() => matmul(context, { w, x: room(512), y: room(512), ...product }))).toBe(
      `matmul w: ${columns} columns of ${dtype}`,
    );
  });

  test("with too little room for what goes in or comes out", () => {
    const w = matrix("F32", 4, 8);
    expect(refusal(() => matmul(context, { w, x: room(15), y: room(8), ...product }))).toBe(
      "matmul w: x is too small",
    );
    expect(refusal(() => matmul(context, { w, x: room(16), y: room(7), ...product }))).toBe(
      "matmul w: y is too small",
    );
  });

  test("with more lanes than a subgroup has", () => {
    const variant = { kernel: "vector", lanes: 128, rows: 1, columns: 1, subgroups: 1 } as const;
    const w = matrix("F32", 4, 8);
    expect(
      refusal(() => matmul(context, { w, x: room(16), y: room(8), variant, ...product })),
    ).toBe("matmul w: 128 lanes of 32");
  });
});

describe("an embedding", () => {
  test("of rows that are not whole blocks, or with too little room", () => {
    const more = { step: room(8), rowCapacity: 2 };
    expect(
      refusal(() => embed(context, { table: matrix("Q6_K", 9, 64), x: room(999), ...more })),
    ).toBe("embed: 64 columns of Q6_K");
    expect(
      refusal(() => embed(context, { table: matrix("Q8_0", 9, 64), x: room(127), ...more })),
    ).toBe("embed: x is too small");
  });
});

describe("rope", () => {
  test.each([
    [7, 6],
    [8, 7],
    [8, 10],
  ])("of head width %d with %d rotated", (headWidth, rotary) => {
    const x = room(64);
    const act = () =>
      ropeCache(context, {
        query: x,
        key: x,
        value: x,
        keyCache: x,
        valueCache: x,
        frequencies: x,
        step: x,
        rowCapacity: 1,
        heads: 1,
        kvHeads: 1,
        headWidth,
        rotary,
        pairs: "halves",
      });
    expect(refusal(act)).toBe(`rope: ${rotary} of ${headWidth}`);
  });
});

describe("attention", () => {
  const x = room(4096);
  const base = {
    query: x,
    keyCache: x,
    valueCache: x,
    result: x,
    step: x,
    rowCapacity: 2,
    heads: 4,
    kvHeads: 2,
    headWidth: 64,
    scale: 1,
    splits: 1,
  };

  test.each([
    ["heads that do not share evenly", { kvHeads: 3 }, "attention: 4 heads, 3 key/value heads"],
    ["heads of an odd width", { headWidth: 60 }, "attention: head width 60"],
    ["parts that have no room", { splits: 2 }, "attention: parts"],
    [
      "parts that have too little room",
      { splits: 2, parts: room(2 * 4 * 2 * 66 - 1) },
      "attention: parts",
    ],
  ])("with %s", (_, change, message) => {
    expect(refusal(() => attention(context, { ...base, ...change }))).toBe(message);
  });

  test("needs room for parts only if there are several", () => {
    expect(attentionPartBytes(2, 4, 64, 1)).toBe(0);
    expect(attentionPartBytes(2, 4, 64, 2)).toBe(2 * 4 * 2 * 66 * 4);
  });
});

describe("repack", () => {
  const planes = [room(64), room(64)];

  test.each([
    ["half a block", 17, 0],
    ["a start within a word of a plane", 34, 8],
  ])("of %s", (_, byteSize, firstBlock) => {
    const source = { ...room(64), byteSize };
    expect(refusal(() => repack(context, { dtype: "Q8_0", source, planes, firstBlock }))).toBe(
      "repack Q8_0: uneven part",
    );
  });

  test("into a plane that is missing", () => {
    const source = { ...room(64), byteSize: 34 };
    const act = () => repack(context, { dtype: "Q8_0", source, planes: [], firstBlock: 0 });
    expect(refusal(act)).toBe("repack Q8_0: plane 0");
  });
});

test("a launch of another kernel's module", () => {
  const act = () =>
    launch(context, swigluKernel, {
      shader: "repack",
      constants: [],
      parameters: {},
      groups: [1],
      label: "wrong",
    });
  expect(refusal(act)).toBe("repack is not a variant of swiglu");
});

describe("a team of invocations", () => {
  const team = (subgroup: Partial<Capabilities["subgroup"]>, force = {}) => {
    const device = fakeDevice();
    const capabilities = { ...device, subgroup: { ...device.subgroup, ...subgroup } };
    return teamOf({ ...context, capabilities, force });
  };

  test.each([
    ["is a subgroup of 32 where it can be asked for", {}, { lanes: 32, subgroupSize: 32 }],
    [
      "is as large as the device allows",
      { minSize: 8, maxSize: 16 },
      { lanes: 16, subgroupSize: 16 },
    ],
    ["is as small as the device allows", { minSize: 64 }, { lanes: 64, subgroupSize: 64 }],
    [
      "is the only size there is",
      { sizeControl: false, size: 8, minSize: 8, maxSize: 8 },
      { lanes: 8, subgroupSize: undefined },
    ],
  ])("%s", (_, subgroup, expected) => {
    expect(team(subgroup)).toEqual({ reduction: "subgroup", ...expected });
  });

  test.each([
    ["a size that is not certain", { sizeControl: false, minSize: 8, maxSize: 32 }],
    ["no arithmetic", { arithmetic: false }],
    ["no shuffle", { shuffle: false }],
  ])("shares memory instead with %s", (_, subgroup) => {
    expect(team(subgroup)).toEqual({ reduction: "shared", lanes: 32, subgroupSize: undefined });
  });

  test("can be forced", () => {
    expect(team({}, { reduction: "shared" }).reduction).toBe("shared");
    expect(team({}, { subgroupSize: 64 }).lanes).toBe(64);
  });
});
