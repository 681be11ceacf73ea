/** `--logit-bias id=bias`. */
import { expect, test } from "bun:test";
import { parseLogitBias } from "../../src/cli/model-options.ts";

test("nothing given is nothing biased", () => {
  expect(parseLogitBias(undefined)).toEqual(new Map());
});

test.each([
  ["7=1", 7, 1],
  ["0=-1.5", 0, -1.5],
  ["42=+.25", 42, 0.25],
  ["42=1e2", 42, 100],
  ["42=0", 42, 0],
  ["42=inf", 42, Number.POSITIVE_INFINITY],
  ["42=-inf", 42, Number.NEGATIVE_INFINITY],
  ["42=-INF", 42, Number.NEGATIVE_INFINITY],
])("%s", (item, id, bias) => {
  expect(parseLogitBias([item])).toEqual(new Map([[id, bias]]));
});

test("several are kept, and of two for one token the last one", () => {
  expect(parseLogitBias(["1=2", "3=4", "1=5"])).toEqual(
    new Map([
      [1, 5],
      [3, 4],
    ]),
  );
});

test.each(["", "7", "7=", "=1", "a=1", "7=x", "7=nan", "-7=1", "7=1=2", "7 =1", "1.5=1"])(
  "%p is refused",
  (item) => {
    expect(() => parseLogitBias([item])).toThrow(`--logit-bias ${item} is not id=bias`);
  },
);
