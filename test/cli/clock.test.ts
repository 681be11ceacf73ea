/** The time that templates are told. */
import { expect, test } from "bun:test";
import { clock } from "../../src/cli/clock.ts";

test("is the system's, unless it is fixed", () => {
  for (const unset of [undefined, ""]) {
    const before = Date.now();
    const time = clock(unset)().getTime();
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThanOrEqual(Date.now());
  }
});

test.each([
  ["2026-11-30T10:15:00Z", "2026-11-30T10:15:00.000Z"],
  ["2026-11-30T10:15:00+02:00", "2026-11-30T08:15:00.000Z"],
  ["2026-11-30", "2026-11-30T00:00:00.000Z"],
])("%s is %s", (fixed, expected) => {
  expect(clock(fixed)().toISOString()).toBe(expected);
});

test.each(["soon", "2026-13-01", "10:15"])("%s is no time, and that is said at once", (fixed) => {
  expect(() => clock(fixed)).toThrow(`ZINC_NOW ${fixed} is no time`);
});
