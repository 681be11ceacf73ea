/** Measured layouts between runs. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TuningFile } from "../../src/engine/tuning-file.ts";
import { fakeDevice } from "../helpers/fake-device.ts";

const root = mkdtempSync(join(tmpdir(), "zinc-tunings-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folderCount = 0;
const freshFolder = () => join(root, `${folderCount++}`, "zinc");

const device = fakeDevice();
const updated = fakeDevice({ driver: { ...device.driver, info: "Mesa 25.1.0" } });
const wide = { lanes: 32, rows: 2 };
const tall = { lanes: 32, rows: 4 };

function open(folder: string, capabilities = device, kernels = "1") {
  const warnings: string[] = [];
  const file = new TuningFile(folder, capabilities, (message) => warnings.push(message), kernels);
  return { file, warnings };
}

describe("layouts", () => {
  test("come back, and those of another model stand beside them", () => {
    const folder = freshFolder();
    expect(open(folder).file.add([["a", wide]])).toBe(true);
    expect(open(folder).file.add([["b", tall]])).toBe(true);
    expect([...open(folder).file.read()]).toEqual([
      ["a", wide],
      ["b", tall],
    ]);
  });

  test("that are measured again replace what was", () => {
    const folder = freshFolder();
    const { file } = open(folder);
    file.add([["a", wide]]);
    file.add([["a", tall]]);
    expect([...file.read()]).toEqual([["a", tall]]);
  });

  test("are none where there is no file, without a word", () => {
    const { file, warnings } = open(freshFolder());
    expect([[...file.read()], warnings]).toEqual([[], []]);
  });

  test("of another driver are in another file", () => {
    const folder = freshFolder();
    open(folder).file.add([["a", wide]]);
    expect([...open(folder, updated).file.read()]).toEqual([]);
    open(folder, updated).file.add([["a", tall]]);
    expect([...open(folder).file.read()]).toEqual([["a", wide]]);
    expect(readdirSync(folder)).toHaveLength(2);
  });

  test("of another build are forgotten without a word", () => {
    const folder = freshFolder();
    open(folder).file.add([["a", wide]]);
    const { file, warnings } = open(folder, device, "2");
    expect([[...file.read()], warnings]).toEqual([[], []]);
    file.add([["b", tall]]);
    expect([...file.read()]).toEqual([["b", tall]]);
  });
});

describe("a file", () => {
  test.each([
    ["that is empty", ""],
    ["that is cut", '{"device": "Fake GPU", "iden'],
    ["of another shape", '{"tunings": {}}'],
    [
      "with words for numbers",
      '{"device":"","identity":"","kernels":"1","tunings":{"a":{"rows":"two"}}}',
    ],
  ])("%s is ignored with a warning, and written anew", (_, text) => {
    const folder = freshFolder();
    const { file, warnings } = open(folder);
    mkdirSync(folder, { recursive: true });
    writeFileSync(file.path, text);
    expect([...file.read()]).toEqual([]);
    expect(warnings).toEqual([`${file.path} is damaged; kernels are measured anew`]);
    file.add([["a", wide]]);
    expect([...file.read()]).toEqual([["a", wide]]);
    expect(warnings).toHaveLength(1);
  });

  test("of another device under this one's name is ignored with a warning", () => {
    const folder = freshFolder();
    const { file, warnings } = open(folder);
    file.add([["a", wide]]);
    writeFileSync(file.path, readFileSync(file.path, "utf8").replace("Mesa 25.0.7", "Mesa 24"));
    expect([...file.read()]).toEqual([]);
    expect(warnings).toEqual([
      `${file.path} is of another device or driver; kernels are measured anew`,
    ]);
  });

  test("that cannot be written is a warning, and nothing is left over", () => {
    const folder = freshFolder();
    mkdirSync(join(folder, ".."), { recursive: true });
    writeFileSync(folder, "a file where the folder should be");
    const { file, warnings } = open(folder);
    expect(file.add([["a", wide]])).toBe(false);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toStartWith(
      `measured layouts of kernels could not be kept in ${file.path} (`,
    );
  });
});
