/** Kernels refuse what does not fit before anything is recorded. No device is needed for that. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import { attention, attentionPartBytes } from "../../src/kernels/attention.ts";
import { embed } from "../../src/kernels/embed.ts";
import { glu, gluKernel } from "../../src/kernels/glu.ts";
import { launch, type KernelContext } from "../../src/kernels/kernel.ts";
import { linear, type LinearTuning } from "../../src/kernels/linear.ts";
import { matmul } from "../../src/kernels/matmul.ts";
import { quantize } from "../../src/kernels/quantize.ts";
import { teamOf } from "../../src/kernels/reduction.ts";
import { repack } from "../../src/kernels/repack.ts";
import { rmsNorm } from "../../src/kernels/rms-norm.ts";
import { ropeCache } from "../../src/kernels/rope-cache.ts";
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

describe("a gated activation", () => {
  const x = room(64);
  const gated = { gate: x, up: x, y: x, step: x, rowCapacity: 1, width: 8 };

  test("of width 5", () => {
    expect(refusal(() => glu(context, { ...gated, width: 5 }))).toBe(
      "glu: width 5 is no multiple of 4",
    );
  });

  test("of rows that are 10 values apart", () => {
    expect(refusal(() => glu(context, { ...gated, upStride: 10 }))).toBe(
      "glu: stride 10 is no multiple of 4",
    );
  });
});

test("codes of a row that ends within a block", () => {
  const x = room(96);
  expect(refusal(() => quantize(context, { x, y: x, width: 48, step: x, rowCapacity: 1 }))).toBe(
    "quantize: width 48 is no multiple of 32",
  );
});

/** Too many for a few passes over the weights, so that they go in tiles. */
describe("a product of many rows", () => {
  const product = { step: room(8), rowCapacity: 64, deterministic: false };

  test.each([
    ["Q4_K", 128],
    ["Q4_0", 48],
    ["F16", 12],
    ["F32", 4],
  ] as const)("of %s rows of %d values", (dtype, columns) => {
    const w = matrix(dtype, 4, columns);
    expect(refusal(() => matmul(context, { w, x: room(4096), y: room(512), ...product }))).toBe(
      `matmul w: ${columns} columns of ${dtype}`,
    );
  });

  test("with too little room for what goes in or comes out", () => {
    const w = matrix("F32", 4, 8);
    expect(refusal(() => matmul(context, { w, x: room(511), y: room(256), ...product }))).toBe(
      "matmul w: x is too small",
    );
    expect(refusal(() => matmul(context, { w, x: room(512), y: room(255), ...product }))).toBe(
      "matmul w: y is too small",
    );
  });

  test("with activations that tiles do not read", () => {
    const w = matrix("Q8_0", 4, 32);
    const act = () =>
      matmul(context, { w, x: room(2048), y: room(256), activation: "int8", ...product });
    expect(refusal(act)).toBe("matmul w: tiles of int8");
  });
});

describe("a product of few rows", () => {
  const tuning: LinearTuning = { lanes: 8, rows: 1, columns: 2, subgroups: 1, passes: 1 };
  const product = {
    activation: "float",
    x: room(512),
    y: room(512),
    step: room(8),
    rowCapacity: 2,
    tuning,
  } as const;

  test.each([
    ["Q4_K", 128],
    ["Q4_0", 48],
    ["F16", 12],
    ["F32", 4],
  ] as const)("of %s rows of %d values", (dtype, columns) => {
    const w = matrix(dtype, 4, columns);
    expect(refusal(() => linear(context, { ...product, w }))).toBe(
      `linear w: ${columns} columns of ${dtype}`,
    );
  });

  test("with more lanes than a subgroup has", () => {
    const w = matrix("F32", 4, 8);
    const wide = { ...tuning, lanes: 128 };
    expect(refusal(() => linear(context, { ...product, w, tuning: wide }))).toBe(
      "linear w: 128 lanes of 32",
    );
  });

  test("with a norm of several rows", () => {
    const w = matrix("F32", 4, 8);
    const norm = { weight: { name: "n", length: 8, data: room(8) }, epsilon: 1e-5 };
    expect(refusal(() => linear(context, { ...product, w, norm }))).toBe(
      "linear w: norm of 2 rows",
    );
  });

  test("with codes as a result whose blocks workgroups would share", () => {
    const yActivation = "int8";
    // A workgroup of 32 invocations has 4 rows, and all of W 33 or 32.
    expect(
      refusal(() => linear(context, { ...product, w: matrix("F32", 32, 8), yActivation })),
    ).toBe("linear w: 4 rows of 32 cannot be quantized together");
    const more = { ...tuning, passes: 8 };
    expect(
      refusal(() =>
        linear(context, { ...product, w: matrix("F32", 33, 8), yActivation, tuning: more }),
      ),
    ).toBe("linear w: 32 rows of 33 cannot be quantized together");
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
  const sinks = { name: "sinks", length: 3, data: x };
  const base = {
    query: x,
    keyCache: x,
    valueCache: x,
    result: x,
    reader: matrix("F32", 1, 256),
    workspace: x,
    parts: x,
    step: x,
    rowCapacity: 2,
    deterministic: false,
    heads: 4,
    kvHeads: 2,
    headWidth: 64,
    scale: 1,
    splits: 1,
  };

  test.each([
    ["heads that do not share evenly", { kvHeads: 3 }, "attention: 4 heads, 3 key/value heads"],
    ["heads of an odd width", { headWidth: 60 }, "attention: 60, 60"],
    ["values of an odd width", { valueWidth: 30 }, "attention: 64, 30"],
    ["a sink for some heads only", { sinks }, "attention: sinks"],
    ["more splits than a team merges", { splits: 33 }, "attention: 33 splits of 32"],
    [
      "parts that have too little room",
      { splits: 2, parts: room(2 * 4 * 2 * (64 + 4) + 512 * 2 - 1) },
      "attention: 2 splits",
    ],
  ])("with %s", (_, change, message) => {
    expect(refusal(() => attention(context, { ...base, ...change }))).toBe(message);
  });

  test("has room for parts of the largest of its shapes, and for counters of most heads", () => {
    const wide = { heads: 4, kvHeads: 2, headWidth: 64 };
    const many = { heads: 8, kvHeads: 8, headWidth: 16 };
    expect(attentionPartBytes([])).toBe(0);
    expect(attentionPartBytes([wide])).toBe(256 * 2 * (64 + 4) * 4 + 512 * 4 * 4);
    expect(attentionPartBytes([wide, many])).toBe(256 * 2 * (64 + 4) * 4 + 512 * 8 * 4);
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
    launch(context, gluKernel, {
      shader: "repack",
      constants: [],
      parameters: {},
      groups: [1],
      label: "wrong",
    });
  expect(refusal(act)).toBe("repack is not a variant of glu");
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
    // A block of 32 activations lies in eight neighbours.
    ["fewer lanes than share a block", { sizeControl: false, size: 4, minSize: 4, maxSize: 4 }],
    ["fewer lanes at most", { size: 4, minSize: 4, maxSize: 4 }],
  ])("shares memory instead with %s", (_, subgroup) => {
    expect(team(subgroup)).toEqual({ reduction: "shared", lanes: 32, subgroupSize: undefined });
  });

  test("can be forced", () => {
    expect(team({}, { reduction: "shared" }).reduction).toBe("shared");
    expect(team({}, { subgroupSize: 64 }).lanes).toBe(64);
    expect(team({ minSize: 4 }, { subgroupSize: 4 }).reduction).toBe("shared");
  });
});
