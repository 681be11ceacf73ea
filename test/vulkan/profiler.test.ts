/** Times from the device: of the order of what the host's clock says, and summed by label. */
import { describe, expect, test } from "bun:test";
import { DeviceBuffer } from "../../src/vulkan/buffer.ts";
import { Profiler, ProgramTimer } from "../../src/vulkan/profiler.ts";
import { Program } from "../../src/vulkan/program.ts";
import { appendSum } from "../helpers/adder.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { ownedByEachTest } from "../helpers/owned.ts";

const own = ownedByEachTest();
const labels = ["one", "other", "one"];

/** A program of a dispatch for each label. */
function record(clocks: { profiler?: Profiler; timer?: ProgramTimer }): Program {
  const { device, pipelines } = testGpu();
  const count = 1 << 18;
  const a = own(new DeviceBuffer(device, count * 4, "device", "a test")).slice();
  const program = own(new Program(device, pipelines, "test", clocks));
  for (const label of labels) appendSum(program, { a, b: a, y: a }, { count, label });
  return program.seal();
}

/** Milliseconds that the host sees. */
function run(program: Program): number {
  const { timeline } = testGpu();
  const start = performance.now();
  timeline.wait(timeline.submit(program.commands, program.label));
  return performance.now() - start;
}

describe.skipIf(noGpu !== undefined)("the profiler", () => {
  test("sums dispatches by label and pipeline, the longest first", () => {
    const profiler = own(new Profiler(testGpu().device, 3));
    const wallMs = run(record({ profiler }));
    const lines = profiler.read();
    expect(lines.map(({ label, pipeline, count }) => [label, pipeline, count]).toSorted()).toEqual([
      ["one", "adder", 2],
      ["other", "adder", 1],
    ]);
    const [first = 0, second = 0] = lines.map(({ nanoseconds }) => nanoseconds);
    expect(second).toBeGreaterThanOrEqual(0);
    expect(first).toBeGreaterThanOrEqual(second);
    expect((first + second) / 1e6).toBeLessThanOrEqual(wallMs);
  });

  test("has no lines for an empty program", () => {
    const { device, pipelines, timeline } = testGpu();
    const profiler = own(new Profiler(device, 3));
    const program = own(new Program(device, pipelines, "empty", { profiler })).seal();
    timeline.wait(timeline.submit(program.commands, "empty"));
    expect(profiler.read()).toEqual([]);
  });

  test("refuses more dispatches than it has room for", () => {
    const profiler = own(new Profiler(testGpu().device, 2));
    expect(() => record({ profiler })).toThrow("more than 3 dispatches to profile");
  });
});

describe.skipIf(noGpu !== undefined)("the timer", () => {
  test("takes no longer than the host waited, and more than nothing", () => {
    const timer = own(new ProgramTimer(testGpu().device));
    const program = record({ timer });
    for (let i = 0; i < 3; i++) {
      const wallMs = run(program);
      expect(timer.milliseconds()).toBeGreaterThan(0);
      expect(timer.milliseconds()).toBeLessThanOrEqual(wallMs);
    }
  });
});
