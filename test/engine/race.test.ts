/** Races of layouts that are plain to see: they fill memory, some more often than others. */
import { describe, expect, test } from "bun:test";
import { Race } from "../../src/engine/race.ts";
import type { Contest } from "../../src/kernels/tunings.ts";
import { floatBits } from "../../src/math.ts";
import { Result, VulkanError } from "../../src/vulkan/result.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";

interface Filling {
  /** Each time costs the same. */
  readonly times: number;
  readonly value: number;
  /** What the driver says of it. */
  readonly fault?: number;
}

const usual: Filling = { times: 8, value: 1 };

function fillingOf(candidates: readonly Filling[]): Contest<Filling> {
  const outputBytes = 4 << 20;
  return {
    key: "filling",
    weightBytes: outputBytes,
    candidates,
    inputBytes: 4,
    outputBytes,
    record({ program }, { times, value, fault }, { outputs }) {
      if (fault !== undefined) throw new VulkanError("vkCreateComputePipelines", fault);
      for (let i = 0; i < times; i++) program.fill(outputs, floatBits(value));
    },
    results: ({ outputs }) => outputs,
  };
}

function winnerAmong(candidates: readonly Filling[], ms = 10_000) {
  const contest = fillingOf(candidates);
  using race = new Race(testGpu(), [contest]);
  return race.run([contest], [contest], performance.now() + ms);
}

describe.skipIf(noGpu !== undefined)("the winner of a race", () => {
  test("does the same in less time", () => {
    const fast = { times: 1, value: 1 };
    const { winner, speedup } = winnerAmong([usual, { times: 9, value: 1 }, fast]);
    expect(winner).toBe(fast);
    expect(speedup).toBeGreaterThan(1.5);
  });

  test.each([
    ["is slower", { times: 16, value: 1 }],
    ["is faster and does something else", { times: 1, value: 2 }],
    ["does nothing at all", { times: 0, value: 1 }],
    ["cannot be made by the driver", { times: 1, value: 1, fault: -3 }],
  ])("is the usual layout where the other one %s", (_, other) => {
    expect(winnerAmong([usual, other])).toEqual({ winner: usual, speedup: 1 });
  });

  test("is the usual layout where there is no time, or no other", () => {
    const none = { winner: usual, speedup: 1 };
    expect(winnerAmong([usual, { times: 1, value: 1 }], 0)).toEqual(none);
    expect(winnerAmong([usual])).toEqual(none);
  });

  test("is not looked for on a device that is lost", () => {
    const lost = { times: 1, value: 1, fault: Result.ERROR_DEVICE_LOST };
    expect(() => winnerAmong([usual, lost])).toThrow("VK_ERROR_DEVICE_LOST");
    expect(() => winnerAmong([{ ...usual, fault: -3 }])).toThrow("VK_ERROR_INITIALIZATION_FAILED");
  });
});
