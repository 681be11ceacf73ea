/**
 * Rotary frequencies as files ask for them. The YaRN values were computed apart from this code,
 * with the formulas of the paper's own implementation (find_correction_range, linear_ramp_mask).
 */
import { describe, expect, test } from "bun:test";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { ConfigReader } from "../../src/model/config.ts";
import { readRope, type RopeOptions } from "../../src/model/rope.ts";
import { forgeGguf, scalar, text } from "../helpers/gguf-forge.ts";

/** What a file with these `llama.rope.*` keys gives for heads 16 wide. */
function ropeOf(
  keys: Readonly<Record<string, number | string>>,
  options: Partial<RopeOptions> = {},
) {
  const file = openGgufBytes(
    "rope.gguf",
    forgeGguf({
      pairs: [
        ["llama.context_length", scalar("u32", 1024)],
        ...Object.entries(keys).map(
          ([key, value]) =>
            [
              `llama.rope.${key}`,
              typeof value === "string"
                ? text(value)
                : scalar(key === "dimension_count" ? "u32" : "f32", value),
            ] as const,
        ),
      ],
    }),
  );
  const rope = readRope(new ConfigReader(file, "llama"), {
    headWidth: 16,
    pairs: "neighbours",
    ...options,
  });
  return { ...rope, radians: Array.from(rope.radians, (angle) => Number(angle.toPrecision(9))) };
}

const plain = [1, 0.316227766, 0.1, 0.0316227766, 0.01, 0.00316227766, 0.001, 0.000316227766];

describe("frequencies", () => {
  test("fall from 1 by equal factors, by default with base 10000", () => {
    expect(ropeOf({})).toEqual({ rotary: 16, pairs: "neighbours", radians: plain, magnitude: 1 });
  });

  test("follow the base", () => {
    expect(ropeOf({ freq_base: 256 }).radians).toEqual([
      1, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125,
    ]);
  });

  test("may be of a part of the head", () => {
    const { rotary, radians } = ropeOf({ dimension_count: 4, freq_base: 100 });
    expect([rotary, ...radians]).toEqual([4, 1, 0.1]);
  });

  test("are divided by what the file has for each pair", () => {
    const divisors = [1, 1, 2, 2, 4, 4, 8, 8];
    expect(ropeOf({}, { divisors }).radians).toEqual(
      plain.map((angle, i) => Number((angle / (divisors[i] ?? 1)).toPrecision(9))),
    );
  });
});

describe("linear scaling", () => {
  const quarter = plain.map((angle) => Number((angle / 4).toPrecision(9)));

  test.each([
    [{ "scaling.type": "linear", "scaling.factor": 4 }],
    [{ "scaling.type": "linear", scale_linear: 4 }],
    // As old converters wrote it.
    [{ scale_linear: 4 }],
    [{ "scaling.factor": 4 }],
  ])("by %j", (keys) => {
    expect(ropeOf(keys as Record<string, number | string>)).toMatchObject({
      radians: quarter,
      magnitude: 1,
    });
  });

  test("is off where the type is none", () => {
    expect(ropeOf({ "scaling.type": "none", "scaling.factor": 4 }).radians).toEqual(plain);
  });
});

describe("YaRN", () => {
  const yarn = {
    "scaling.type": "yarn",
    "scaling.factor": 4,
    "scaling.original_context_length": 256,
  };

  test("keeps high frequencies, stretches low ones, and goes from one to the other", () => {
    const { radians, magnitude } = ropeOf(yarn);
    expect(radians).toEqual([
      1, 0.25693506, 0.0625, 0.0138349648, 0.0025, 0.000790569415, 0.00025, 0.0000790569415,
    ]);
    expect(magnitude).toBeCloseTo(1.138629436111989, 12);
  });

  test("moves the ramp with its betas", () => {
    const betas = { "scaling.yarn_beta_fast": 16, "scaling.yarn_beta_slow": 2 };
    expect(ropeOf({ ...yarn, ...betas }).radians).toEqual([
      1, 0.237170825, 0.05, 0.00790569415, 0.0025, 0.000790569415, 0.00025, 0.0000790569415,
    ]);
  });

  test("of a large model: factor 8 over 8192 positions, base 500000", () => {
    const { radians, magnitude } = ropeOf(
      {
        "scaling.type": "yarn",
        "scaling.factor": 8,
        "scaling.original_context_length": 8192,
        freq_base: 500_000,
      },
      { headWidth: 128 },
    );
    expect([0, 10, 20, 25, 30, 35, 40, 45, 50, 63].map((i) => radians[i])).toEqual([
      1, 0.128687373, 0.0148556889, 0.00380032017, 0.000814839823, 0.0000955621235, 0.000034281022,
      0.0000122976387, 0.00000441153467, 3.06892599e-7,
    ]);
    expect(magnitude).toBeCloseTo(1.2079441541679836, 12);
  });

  test("takes the model's context as the original one if the file does not say", () => {
    const { "scaling.original_context_length": _, ...silent } = yarn;
    expect(ropeOf(silent)).toEqual(ropeOf({ ...silent, "scaling.original_context_length": 1024 }));
  });

  test.each([
    ["scaling.yarn_attn_factor", { "scaling.yarn_attn_factor": 0.5 }, 0.5 * 1.138629436111989],
    ["scaling.attn_factor", { "scaling.attn_factor": 0.5 }, 0.5 * 1.138629436111989],
    [
      "both",
      { "scaling.yarn_attn_factor": 0.5, "scaling.attn_factor": 0.5 },
      0.25 * 1.138629436111989,
    ],
  ])("multiplies its magnitude by %s", (_, keys, magnitude) => {
    expect(ropeOf({ ...yarn, ...keys }).magnitude).toBeCloseTo(magnitude, 12);
  });

  test("without extrapolation is linear", () => {
    expect(ropeOf({ ...yarn, "scaling.yarn_ext_factor": 0 }).radians).toEqual(
      plain.map((angle) => Number((angle / 4).toPrecision(9))),
    );
  });

  test("by a factor of 1 changes nothing", () => {
    expect(ropeOf({ ...yarn, "scaling.factor": 1 })).toMatchObject({
      radians: plain,
      magnitude: 1,
    });
  });
});
