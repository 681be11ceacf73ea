/** The checker itself: a wrong kernel must not pass, whatever is wrong with it. */
import { describe, expect, test } from "bun:test";
import { relativeError, sumBound, type VerifyCase } from "../../src/kernels/verify/case.ts";
import { Random, randomBlocks } from "../../src/kernels/verify/random.ts";
import { shaderNames } from "../../src/kernels/module.ts";
import { verify, verifyCases } from "../../src/kernels/verify/verify.ts";
import { dequantize } from "../../src/tensor/dequantize.ts";
import { dtypes } from "../../src/tensor/dtype.ts";
import { subslice } from "../../src/vulkan/buffer.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";

describe("the relative error", () => {
  const right = [3, -4, 0, 5];

  test.each([
    ["nothing is wrong", right, 0],
    ["one value is off by a tenth of the root mean square", [3, -4, 0.3536, 5], 0.1],
    ["the sign of one value is wrong", [3, 4, 0, 5], 8 / Math.sqrt(12.5)],
    ["a value is no number", [3, Number.NaN, 0, 5], Infinity],
    ["the first value is no number", [Number.NaN, -4, 0, 5], Infinity],
    ["the last value is no number, behind a large error", [99, -4, 0, Number.NaN], Infinity],
    ["a value is infinite", [3, -4, 0, Infinity], Infinity],
    ["the result is short", [3, -4, 0], Infinity],
    ["the result is long", [3, -4, 0, 5, 0], Infinity],
    ["the result is empty", [], Infinity],
  ])("if %s", (_, actual, expected) => {
    expect(relativeError(actual, right)).toBeCloseTo(expected, 4);
  });

  test("is absolute where all expected values are zero", () => {
    expect(relativeError([0, 0.25], [0, 0])).toBe(0.25);
  });

  test("is infinite if the reference itself is no number", () => {
    expect(relativeError([1, 2], [1, Number.NaN])).toBe(Infinity);
  });
});

describe.skipIf(noGpu !== undefined)("a mistake in a kernel's result", () => {
  /** A kernel that copies floats, the first `count` of 256; `spoil` changes what came out. */
  function caseWith(spoil: (result: Float32Array) => void, count = 256): VerifyCase {
    return {
      kernel: "copy",
      variant: "f32",
      name: "spoilt",
      bound: 1e-5,
      run(bench) {
        const x = new Random(1).floats(256);
        const [source, target] = [bench.upload(x), bench.floats(256)];
        bench.run(({ program }) =>
          program.copy(subslice(source, 0, count * 4), subslice(target, 0, count * 4)),
        );
        const result = bench.read(target, 256);
        spoil(result);
        return relativeError(result, x);
      },
    };
  }

  const statusOf = (verifyCase: VerifyCase) => verify(testGpu(), verifyCase).status;

  test("of none is fine", () => {
    expect(statusOf(caseWith(() => {}))).toBe("ok");
  });

  test.each([0, 255])("of one value, %d, is found", (index) => {
    expect(
      statusOf(
        caseWith((result) => {
          result[index] = (result[index] ?? 0) + 0.001;
        }),
      ),
    ).toBe("fail");
  });

  test("of a neighbour's value is found", () => {
    expect(statusOf(caseWith((result) => result.copyWithin(7, 8, 9)))).toBe("fail");
  });

  test("of values that were not written is found: they are poisoned before", () => {
    expect(statusOf(caseWith(() => {}, 255))).toBe("fail");
  });

  test("that throws is not hidden, and the memory is freed", () => {
    const throws: VerifyCase = {
      ...caseWith(() => {}),
      run() {
        throw new Error("as wanted");
      },
    };
    expect(() => statusOf(throws)).toThrow("as wanted");
  });
});

describe("the cases", () => {
  test("cover every kernel that computes", () => {
    const kernels = Map.groupBy(verifyCases, ({ kernel }) => kernel);
    expect([...kernels.keys()].toSorted()).toEqual([
      "attention",
      "embed",
      "expert_choice",
      "expert_direct",
      "expert_down",
      "expert_gate_up",
      "expert_matmul",
      "expert_order",
      "expert_sum",
      "flash_attention",
      "gated_delta",
      "gated_norm",
      "glu",
      "halve",
      "linear",
      "matmul",
      "matmul_direct",
      "matmul_narrow",
      "matmul_wide",
      "quantize",
      "repack",
      "rms_norm",
      "rope_cache",
      "router",
      "sample",
      "short_conv",
      "soft_cap",
      "unscramble",
    ]);
  });

  test("cover every compiled module but what is asked of a device", () => {
    const variants = Map.groupBy(verifyCases, ({ kernel }) => kernel);
    const missing = shaderNames.filter((module) => {
      const [kernel = "", ...axes] = module.split(".");
      const words = variants.get(kernel)?.map(({ variant }) => new Set(variant.split(" "))) ?? [];
      return !words.some((variant) => axes.every((axis) => variant.has(axis)));
    });
    // The terms of the delta rule are computed in its own cases.
    expect(missing).toEqual([
      "delta_terms.subgroup",
      "delta_terms.shared",
      "fragment_probe",
      "read_bandwidth",
    ]);
  });

  test("have bounds that no wrong element passes", () => {
    const kernelsAbove = (least: number) =>
      [
        ...new Set(verifyCases.filter(({ bound }) => bound > least).map(({ kernel }) => kernel)),
      ].toSorted();
    // Keys and values as halves, results as codes, and operands of matrix units.
    expect(kernelsAbove(sumBound)).toEqual([
      "attention",
      "expert_direct",
      "expert_gate_up",
      "expert_matmul",
      "flash_attention",
      "halve",
      "linear",
      "matmul_direct",
      "matmul_narrow",
      "matmul_wide",
      "quantize",
      "rope_cache",
    ]);
    // Codes of 8 bits: the rounding itself, and rows whose rounding may differ in the last bit.
    // Weights as halves, where they nearly cancel.
    // Gated products of those.
    expect(kernelsAbove(5e-3)).toEqual([
      "attention",
      "expert_direct",
      "expert_gate_up",
      "expert_matmul",
      "linear",
      "matmul_direct",
      "quantize",
    ]);
    expect(sumBound).toBe(2e-5);
  });

  test.each(dtypes)("try %s blocks whose values are numbers, and not all the same", (dtype) => {
    const values = dequantize(dtype, randomBlocks(dtype, 256, new Random(1)));
    expect(values.every(Number.isFinite)).toBe(true);
    expect(new Set(values).size).toBeGreaterThan(32);
  });
});
