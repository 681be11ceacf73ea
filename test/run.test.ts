/** The last line of all tests: what counts as passed, failed, skipped. */
import { expect, test } from "bun:test";
import { complaintsOf, countsOf } from "./run.ts";

const ran = (count: number) => `Ran ${count} tests across 2 files. [1.00s]\n`;

test.each([
  ["all passed", ` 3 pass\n 0 fail\n 5 expect() calls\n${ran(3)}`, 0, [3, 0, 0]],
  ["some were skipped", ` 1 pass\n 2 skip\n 0 fail\n${ran(3)}`, 0, [1, 0, 2]],
  ["some are to be written", ` 1 pass\n 1 todo\n 0 fail\n${ran(2)}`, 0, [1, 0, 1]],
  ["some failed", ` 1 pass\n 2 fail\n${ran(3)}`, 1, [1, 2, 0]],
  [
    "a test talks of other results",
    ` 9 pass\n 9 fail\n\n 3 pass\n 0 fail\n${ran(3)}`,
    0,
    [3, 0, 0],
  ],
  ["one file alone", " 1 pass\n 0 fail\nRan 1 test across 1 file. [1.00ms]\n", 0, [1, 0, 0]],
])("if %s", (_, output, exitCode, expected) => {
  const { passed, failed, skipped } = countsOf(output, exitCode) ?? {};
  expect([passed, failed, skipped]).toEqual(expected);
});

test.each([
  ["it crashed", "(pass) one [1.00ms]\npanic: Segmentation fault\n", 133],
  ["it crashed behind its last test", ` 3 pass\n 0 fail\n${ran(3)}`, 139],
  ["it failed for no test's sake", ` 3 pass\n 0 fail\n${ran(3)}`, 1],
  ["it failed, and says that all is fine", ` 3 pass\n 1 fail\n${ran(4)}`, 0],
  ["it said nothing", "", 0],
])("there is no result if %s", (_, output, exitCode) => {
  expect(countsOf(output, exitCode)).toBeUndefined();
});

test("what failed tests said can be shown again", () => {
  const output = [
    "(pass) one [1.00ms]",
    "error: expect(received).toBe(expected)",
    "Expected: 2",
    "(fail) two [1.00ms]",
    "(skip) three",
    "(fail) four [1.00ms]",
    "",
    "2 tests failed:",
    "(fail) two [1.00ms]",
    "(fail) four [1.00ms]",
    "",
  ].join("\n");
  expect(complaintsOf(output)).toEqual([
    "error: expect(received).toBe(expected)\nExpected: 2\n(fail) two [1.00ms]",
    "(fail) four [1.00ms]",
  ]);
});
