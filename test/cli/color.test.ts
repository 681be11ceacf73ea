/** When text is coloured: each stream by itself, the flag above the environment. */
import { describe, expect, test } from "bun:test";
import { wantsColor } from "../../src/cli/output.ts";

describe("without a flag", () => {
  test.each([
    // [isTerminal, NO_COLOR, FORCE_COLOR, coloured]
    [false, false, false, false],
    [false, false, true, true],
    [false, true, false, false],
    [false, true, true, false],
    [true, false, false, true],
    [true, false, true, true],
    [true, true, false, false],
    [true, true, true, false],
  ])("terminal %p, NO_COLOR %p, FORCE_COLOR %p: %p", (isTerminal, no, force, expected) => {
    const env = { ...(no && { NO_COLOR: "1" }), ...(force && { FORCE_COLOR: "1" }) };
    expect(wantsColor("auto", env, isTerminal)).toBe(expected);
  });

  test("empty variables count as unset", () => {
    const env = { NO_COLOR: "", FORCE_COLOR: "", CLICOLOR_FORCE: "" };
    expect(wantsColor("auto", env, true)).toBe(true);
    expect(wantsColor("auto", env, false)).toBe(false);
  });

  test("a dumb terminal gets no colour unless forced", () => {
    expect(wantsColor("auto", { TERM: "dumb" }, true)).toBe(false);
    expect(wantsColor("auto", { TERM: "dumb", FORCE_COLOR: "1" }, true)).toBe(true);
    expect(wantsColor("auto", { TERM: "xterm-256color" }, true)).toBe(true);
  });

  test("CLICOLOR_FORCE forces, and zero forces nothing", () => {
    expect(wantsColor("auto", { CLICOLOR_FORCE: "1" }, false)).toBe(true);
    expect(wantsColor("auto", { CLICOLOR_FORCE: "0" }, false)).toBe(false);
    expect(wantsColor("auto", { FORCE_COLOR: "0" }, false)).toBe(false);
  });
});

describe("with a flag", () => {
  test.each([
    [false, false],
    [false, true],
    [true, false],
    [true, true],
  ])("terminal %p, NO_COLOR %p: only the flag counts", (isTerminal, no) => {
    const env = no ? { NO_COLOR: "1" } : { FORCE_COLOR: "1" };
    expect(wantsColor("always", env, isTerminal)).toBe(true);
    expect(wantsColor("never", env, isTerminal)).toBe(false);
  });
});
