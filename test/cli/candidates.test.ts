/** What a shell is offered for the last word of a line. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { candidates } from "../../src/cli/completion/candidates.ts";
import { catalog } from "../../src/store/catalog.ts";
import { table } from "./commands.ts";

const place = mkdtempSync(join(tmpdir(), "zinc-candidates-"));
const before = process.env["ZINC_MODELS"];

beforeAll(() => {
  process.env["ZINC_MODELS"] = place;
  mkdirSync(join(place, "mine"));
  writeFileSync(join(place, "mine/m.gguf"), "12345");
});

afterAll(() => {
  if (before === undefined) delete process.env["ZINC_MODELS"];
  else process.env["ZINC_MODELS"] = before;
  rmSync(place, { recursive: true });
});

async function wordsOf(...typed: string[]): Promise<string[]> {
  return (await candidates(table, typed)).words.map(({ word }) => word);
}

describe("commands", () => {
  test("are offered by their first letters", async () => {
    expect(await wordsOf("")).toEqual(Object.keys(table));
    expect(await wordsOf("t")).toEqual(["template", "tokenize"]);
    expect(await wordsOf("help", "te")).toEqual(["template"]);
    expect(await wordsOf("nonsense", "")).toEqual([]);
    expect(await wordsOf("constructor", "")).toEqual([]);
  });

  test("have actions", async () => {
    expect(await wordsOf("model", "")).toEqual(["list", "pull", "use", "active", "rm", "info"]);
    expect(await wordsOf("model", "r")).toEqual(["rm"]);
    expect(await wordsOf("model", "--h")).toEqual(["--help"]);
    expect(await wordsOf("model", "constructor", "")).toEqual([]);
  });
});

describe("flags", () => {
  test("are those of the command", async () => {
    expect(await wordsOf("tokenize", "--")).toEqual([
      "--model",
      "--special",
      "--jsonl",
      "--color",
      "--help",
    ]);
    expect(await wordsOf("model", "pull", "--us")).toEqual(["--use"]);
  });

  test("without a command are those of run, and the shortcuts", async () => {
    expect(await wordsOf("--c")).toEqual(["--check", "--ctx", "--color"]);
    expect(await wordsOf("--check", "--st")).toEqual(["--strict"]);
    expect(await wordsOf("--temp", "0", "--min")).toEqual(["--min-p"]);
  });

  test("are offered once, unless they may be repeated", async () => {
    expect(await wordsOf("--seed", "1", "--see")).toEqual([]);
    expect(await wordsOf("-m", "x", "--mo")).toEqual([]);
    expect(await wordsOf("--stop", "x", "--sto")).toEqual(["--stop"]);
  });

  test("behind -- are none", async () => {
    expect(await wordsOf("model", "use", "--", "--")).toEqual([]);
  });
});

describe("values", () => {
  test("of a choice, in one word, in two, and in the three that bash makes of it", async () => {
    expect(await wordsOf("--color=a")).toEqual(["--color=auto", "--color=always"]);
    expect(await wordsOf("--color", "a")).toEqual(["auto", "always"]);
    expect(await wordsOf("--color", "=", "a")).toEqual(["auto", "always"]);
    expect(await wordsOf("--color", "=")).toEqual(["auto", "always", "never"]);
  });

  test("of -m are the models that are here, and files", async () => {
    expect(await candidates(table, ["-m", ""])).toEqual({
      words: [
        { word: "spark", description: "the small model inside zinc" },
        { word: "mine", description: "5 bytes" },
      ],
      files: true,
    });
    expect(await wordsOf("bench", "--model=m")).toEqual(["--model=mine"]);
  });

  test("of what takes any text are none", async () => {
    expect(await candidates(table, ["--prompt", ""])).toEqual({ words: [], files: false });
    expect(await candidates(table, ["--template", ""])).toEqual({ words: [], files: true });
  });
});

describe("arguments", () => {
  test("are models to use, to remove, to look into and to pull", async () => {
    expect(await wordsOf("model", "use", "")).toEqual(["spark", "mine"]);
    expect(await wordsOf("model", "rm", "-f", "")).toEqual(["mine"]);
    expect(await candidates(table, ["model", "info", "mi"])).toMatchObject({
      words: [{ word: "mine" }],
      files: true,
    });
    expect(await wordsOf("model", "pull", "")).toEqual(catalog.map(({ name }) => name));
    expect(await wordsOf("model", "pull", "--name", "x", "phi")).toEqual(["phi-4-mini"]);
  });

  test("are offered as often as they are taken", async () => {
    expect(await wordsOf("model", "use", "mine", "")).toEqual([]);
    expect(await wordsOf("completion", "")).toEqual(["bash", "zsh", "fish"]);
  });
});
