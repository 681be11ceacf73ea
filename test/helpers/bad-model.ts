/** What every refusal of a model file must be, whatever is wrong with it. */
import { expect } from "bun:test";
import { UserError } from "../../src/errors.ts";

/**
 * Runs what must fail, and returns the line that the user sees. It must be a `UserError` of kind
 * "model", one line that names the file, and come in less than 50 ms.
 */
export function refusalOf(open: () => unknown, fileName: string): string {
  const start = process.cpuUsage();
  let thrown: unknown;
  try {
    open();
  } catch (error) {
    thrown = error;
  }
  // Processor time, since other work on the machine must not fail the tests.
  const { user, system } = process.cpuUsage(start);
  expect(thrown).toBeInstanceOf(UserError);
  if (!(thrown instanceof UserError)) throw thrown;
  expect(thrown.kind).toBe("model");
  const line = thrown.remedy === undefined ? thrown.message : `${thrown.message}; ${thrown.remedy}`;
  expect(line).not.toMatch(/[\n\r]/);
  expect(line).toContain(fileName);
  expect((user + system) / 1000).toBeLessThan(50);
  return line;
}
