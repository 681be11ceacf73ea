/** Ranges of the sampling parameters, and what a person reads outside of them. */
import { describe, expect, test } from "bun:test";
import { completeSampling, defaultSampling, type Sampling } from "../../src/engine/sampling.ts";
import { UserError } from "../../src/errors.ts";

type Given = { readonly [K in keyof Sampling]?: Sampling[K] | undefined };

function refusalOf(given: Given): string | undefined {
  try {
    completeSampling(given);
    return undefined;
  } catch (error) {
    if (error instanceof UserError && error.kind === "usage") return error.text;
    throw error;
  }
}

test("what is not given is as always", () => {
  expect(completeSampling({})).toEqual(defaultSampling);
  expect(completeSampling({ temperature: undefined, topK: 3 })).toEqual({
    ...defaultSampling,
    topK: 3,
  });
});

describe("inside its range:", () => {
  test.each([
    ["temperature", [0, 1e-9, 2, 100]],
    ["topK", [0, 1, 1 << 30]],
    ["topP", [1e-9, 0.5, 1]],
    ["minP", [0, 0.05, 1]],
    ["repeatPenalty", [0.01, 1, 100]],
    ["presencePenalty", [-100, 0, 100]],
    ["frequencyPenalty", [-100, -0.5, 100]],
    ["seed", [0, 2 ** 32, Number.MAX_SAFE_INTEGER]],
  ] as const)("%s", (name, values) => {
    for (const value of values) {
      expect(completeSampling({ [name]: value })).toEqual({ ...defaultSampling, [name]: value });
    }
  });
});

describe("outside its range:", () => {
  test.each([
    ["temperature", [-1, 100.1, Number.NaN, Infinity, -Infinity], "a number from 0 to 100"],
    ["topK", [-1, 1.5, Number.NaN, 2 ** 31], "a whole number from 0 to 1073741824"],
    ["topP", [0, -0.5, 1.01, Number.NaN], "a number above 0 to 1"],
    ["minP", [-0.1, 1.1, Number.NaN], "a number from 0 to 1"],
    ["repeatPenalty", [0, -1, 101, Number.NaN], "a number above 0 to 100"],
    ["presencePenalty", [-101, 101, Number.NaN], "a number from -100 to 100"],
    ["frequencyPenalty", [-101, 101, Number.NaN], "a number from -100 to 100"],
    ["seed", [-1, 0.5, 2 ** 53, Number.NaN, Infinity], `a whole number from 0 to ${2 ** 53 - 1}`],
  ] as const)("%s", (name, values, range) => {
    for (const value of values) {
      expect(refusalOf({ [name]: value })).toBe(`${name} is ${value}; it must be ${range}`);
    }
  });

  test("text and null are refused, too: JavaScript callers have no types", () => {
    expect(refusalOf({ temperature: "hot" as never })).toBe(
      "temperature is hot; it must be a number from 0 to 100",
    );
    expect(refusalOf({ temperature: "0.5" as never })).toBeDefined();
    expect(refusalOf({ topP: null as never })).toBeDefined();
    expect(refusalOf({ minP: null as never })).toBeDefined();
  });
});
