/** The way of steps through devices that are none: who does what before whom. */
import { describe, expect, test } from "bun:test";
import { Runner } from "../../src/engine/runner.ts";
import type { Stage } from "../../src/engine/stage.ts";
import type { StepWork } from "../../src/engine/step-plan.ts";

/** A device for each letter, and what they are told, as "A takes 0, A is waited for, …". */
function started(letters: string, failing = "") {
  const log: string[] = [];
  const pass = {
    program: { dispatchCount: 5, barrierCount: 3 },
    timer: { milliseconds: () => 2 },
  };
  const stages = [...letters].map((letter) => ({
    letter,
    flightCount: Math.max(2, letters.length),
    submit(index: number) {
      log.push(`${letter} takes ${index}`);
      if (letter === failing) throw new Error(`${letter} is lost`);
      return { pass, submission: 0, submits: 1 };
    },
    wait: () => log.push(`${letter} is waited for`),
    handOver: (next: { letter: string }, index: number, rows: number) =>
      log.push(`${rows} rows of ${index} to ${next.letter}`),
  }));
  const runner = new Runner(stages as unknown as readonly Stage[]);
  const takeLog = () => log.splice(0);
  return { runner, takeLog };
}

function work(rowCount: number): StepWork {
  const rows = Array.from({ length: rowCount }, () => ({ token: 1, position: 0, sequence: 0 }));
  return { rows, outputRows: [rowCount - 1], tables: [], copies: { blocks: [], states: [] } };
}

describe("on one device", () => {
  test("a step is one submission, and nothing is handed over", () => {
    const { runner, takeLog } = started("A");
    const flights = [runner.launch(work(3)), runner.launch(work(4))];
    expect(takeLog()).toEqual(["A takes 0", "A takes 1"]);
    for (const flight of flights) runner.land(flight);
    expect(takeLog()).toEqual(["A is waited for", "A is waited for"]);
    expect(runner.lastStep).toMatchObject({ rows: 4, submits: 1, dispatches: 5, barriers: 3 });
  });
});

describe("on several", () => {
  test("a step goes through all of them, and costs what it costs on all", () => {
    const { runner, takeLog } = started("AB");
    runner.land(runner.launch(work(3)));
    expect(takeLog()).toEqual([
      "A takes 0",
      "A is waited for",
      "3 rows of 0 to B",
      "B takes 0",
      "B is waited for",
    ]);
    const costs = { rows: 3, outputs: 1, submits: 2, dispatches: 10, barriers: 6, gpuMs: 4 };
    expect(runner.lastStep).toMatchObject(costs);
  });

  test("the second has a step while the first has the next one", () => {
    const { runner, takeLog } = started("AB");
    const first = runner.launch(work(3));
    takeLog();
    const second = runner.launch(work(4));
    expect(takeLog()).toEqual(["A takes 1", "A is waited for", "3 rows of 0 to B", "B takes 0"]);
    runner.land(first);
    expect(takeLog()).toEqual(["B is waited for"]);
    runner.land(second);
    expect(takeLog()).toEqual([
      "A is waited for",
      "4 rows of 1 to B",
      "B takes 1",
      "B is waited for",
    ]);
  });

  test("three have a step each", () => {
    const { runner, takeLog } = started("ABC");
    const flights = [1, 2].map((rows) => runner.launch(work(rows)));
    takeLog();
    flights.push(runner.launch(work(3)));
    expect(takeLog()).toEqual([
      "A takes 2",
      "B is waited for",
      "1 rows of 0 to C",
      "C takes 0",
      "A is waited for",
      "2 rows of 1 to B",
      "B takes 1",
    ]);
  });

  test("a step that nobody waits for is on every device before those behind it", () => {
    const { runner, takeLog } = started("ABC");
    runner.launch(work(1));
    const second = runner.launch(work(2));
    takeLog();
    runner.land(second);
    const takes = takeLog().filter((line) => line.includes("takes"));
    expect(takes).toEqual(["C takes 0", "B takes 1", "C takes 1"]);
  });

  test("a younger step may land first, if somebody is in a hurry", () => {
    const { runner, takeLog } = started("AB");
    const first = runner.launch(work(1));
    runner.land(runner.launch(work(2)));
    takeLog();
    expect(runner.hasRoom).toBe(true);
    runner.land(first);
    expect(takeLog()).toEqual(["B is waited for"]);
    expect(runner.lastStep?.rows).toBe(1);
  });

  test("there is room for as many steps as there is memory for", () => {
    const { runner } = started("ABC");
    const rooms = [1, 2, 3].map((rows) => [runner.hasRoom, runner.launch(work(rows))][0]);
    expect([...rooms, runner.hasRoom]).toEqual([true, true, true, false]);
  });

  test("where a step fails, later ones find the way free once it is given up", () => {
    const { runner, takeLog } = started("AB", "B");
    runner.launch(work(1));
    expect(() => runner.launch(work(2))).toThrow("B is lost");
    runner.reset();
    takeLog();
    runner.launch(work(3));
    expect(takeLog()).toEqual(["A takes 0"]);
  });
});
