/** The judgement of compiled pipelines, and the models that they are compiled for. */
import { describe, expect, test } from "bun:test";
import { describeModel } from "../../src/model/architectures.ts";
import { compare, readBaseline } from "./baseline.ts";
import { faultsOf, figuresOf, type Figures } from "./figures.ts";
import { modelShapes } from "./shapes.ts";

const fine: Figures = {
  vgprs: 96,
  spills: 0,
  scratchBytes: 0,
  ldsBytes: 1024,
  waves: 16,
  codeBytes: 2000,
};
const name = "linear.Q4_K.subgroup.int8(32,32) wave32";

describe("a pipeline", () => {
  test("without faults has none", () => {
    expect(faultsOf(name, fine)).toEqual([]);
  });

  test.each([
    ["that spills", { spills: 3 }, "3 registers are spilled"],
    ["with scratch", { scratchBytes: 64 }, "64 bytes of scratch"],
    ["with few waves", { waves: 7 }, "7 waves, fewer than 8"],
  ])("%s is faulty", (_, change, fault) => {
    expect(faultsOf(name, { ...fine, ...change })).toEqual([fault]);
  });

  test("that is no matrix–vector product may have few waves", () => {
    expect(faultsOf("matmul.Q4_K(256)", { ...fine, waves: 3 })).toEqual([]);
  });

  test("that does not compile is faulty", () => {
    expect(faultsOf(name, "no memory")).toEqual(["no memory"]);
  });

  test("has its figures by the driver's names, all of them", () => {
    const values = {
      VGPRs: 96,
      "Spilled VGPRs": 0,
      "Spilled SGPRs": 0,
      "Scratch size": 0,
      "LDS size": 1024,
      "Subgroups per SIMD": 16,
      "Code size": 2000,
    };
    expect(figuresOf(values)).toEqual(fine);
    expect(() => figuresOf({ ...values, VGPRs: undefined as never })).toThrow('its "VGPRs"');
  });
});

test("a comparison tells what is worse, other, new and gone", () => {
  const before = { a: fine, b: fine, c: fine, d: fine };
  const after = { a: fine, b: { ...fine, waves: 8 }, c: { ...fine, vgprs: 90 }, e: fine };
  expect(compare(before, after)).toEqual({
    worse: ["b: 16 → 8 waves"],
    changed: ["c: vgprs 96 → 90", "e is new", "d is gone"],
  });
});

test("the baseline knows all three families", () => {
  const { families } = readBaseline();
  expect(Object.keys(families)).toEqual(["navi31", "gfx1151", "gfx1201"]);
  for (const compiled of Object.values(families)) {
    expect(Object.keys(compiled).length).toBeGreaterThan(100);
  }
});

test.each(modelShapes.map((shape) => [shape.name, shape] as const))("%s is whole", (_, shape) => {
  expect(describeModel(shape.create().open()).weights.declared().length).toBeGreaterThan(10);
});
