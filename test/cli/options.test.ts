/** How arguments and variables become values: every kind of flag, and every way to get it wrong. */
import { describe, expect, test } from "bun:test";
import {
  integer,
  integers,
  number,
  oneOf,
  sizes,
  text,
  texts,
  toggle,
  words,
} from "../../src/cli/flag.ts";
import { parseOptions, spelling, variableName } from "../../src/cli/options.ts";
import { UserError } from "../../src/errors.ts";

const flags = {
  prompt: text("text", "", { alias: "p" }),
  maxTokens: integer("n", "", { min: 0 }, { alias: "n" }),
  temp: number("t", "", { min: 0, max: 100 }),
  topP: number("p", "", { above: 0, max: 1 }),
  presencePenalty: number("x", "", { min: -100, max: 100 }),
  tokens: integers("ids", ""),
  devices: words("list", ""),
  memory: sizes("list", ""),
  stop: texts("text", ""),
  color: oneOf(["auto", "always", "never"], ""),
  json: toggle(""),
  help: toggle("", { alias: "h" }),
} as const;

function parse(args: readonly string[], env: Record<string, string> = {}): Record<string, unknown> {
  const { values, positionals } = parseOptions(args, flags, env, "zinc run");
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(given), _: positionals };
}

/** The line that the user sees. */
function refusal(args: readonly string[], env: Record<string, string> = {}): string {
  try {
    parse(args, env);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    expect(error.kind).toBe("usage");
    return error.text;
  }
  throw new Error(`${args.join(" ")} was accepted`);
}

describe("spellings", () => {
  test("a flag is spelled with dashes, its variable with underscores", () => {
    expect(spelling("maxTokens")).toBe("max-tokens");
    expect(variableName("maxTokens")).toBe("ZINC_MAX_TOKENS");
    expect(variableName("model")).toBe("ZINC_MODEL");
  });

  test.each([
    ["--max-tokens 5", { maxTokens: 5 }],
    ["--max-tokens=5", { maxTokens: 5 }],
    ["-n 5", { maxTokens: 5 }],
    ["-n=5", { maxTokens: 5 }],
    ["-n5", { maxTokens: 5 }],
    ["-pHello", { prompt: "Hello" }],
    ["--prompt a=b=c", { prompt: "a=b=c" }],
    ["--prompt=a=b=c", { prompt: "a=b=c" }],
    ["--temp 0.5", { temp: 0.5 }],
    ["--temp .5", { temp: 0.5 }],
    ["--temp 5e-1", { temp: 0.5 }],
    ["--temp +0", { temp: 0 }],
    ["--top-p 1", { topP: 1 }],
    ["--tokens 1,2,3", { tokens: [1, 2, 3] }],
    ["--devices 0,radeon", { devices: ["0", "radeon"] }],
    ["--memory 24GB,1.5g,500MB", { memory: [24e9, 1.5e9, 5e8] }],
    ["--tokens 0", { tokens: [0] }],
    ["--color never", { color: "never" }],
    ["--json", { json: true }],
    ["--json=false", { json: false }],
    ["--json=NO", { json: false }],
    ["-h", { help: true }],
  ])("%s is understood", (line, expected) => {
    expect(parse(line.split(" "))).toEqual({ ...expected, _: [] });
  });

  test("a negative number is a value, not a flag", () => {
    expect(parse(["--presence-penalty", "-1"])).toEqual({ presencePenalty: -1, _: [] });
    expect(parse(["--presence-penalty=-1.5"])).toEqual({ presencePenalty: -1.5, _: [] });
  });

  test("a text may begin with a dash, be a dash, or have line breaks", () => {
    expect(parse(["--prompt", "-5 degrees"])).toEqual({ prompt: "-5 degrees", _: [] });
    expect(parse(["--prompt", "-d foo"])).toEqual({ prompt: "-d foo", _: [] });
    expect(parse(["--prompt", "-"])).toEqual({ prompt: "-", _: [] });
    expect(parse(["--prompt", "a\nb"])).toEqual({ prompt: "a\nb", _: [] });
    expect(parse(["--prompt=--temp"])).toEqual({ prompt: "--temp", _: [] });
  });

  test("a switch takes no value from the next argument", () => {
    expect(parse(["--json", "false"])).toEqual({ json: true, _: ["false"] });
  });

  test("of repeated flags the last one counts, and lists grow", () => {
    expect(parse(["--temp", "1", "--temp", "0"])).toEqual({ temp: 0, _: [] });
    expect(parse(["--stop", "a", "--stop=b", "--stop", "a"])).toEqual({
      stop: ["a", "b", "a"],
      _: [],
    });
  });

  test("behind -- everything is positional", () => {
    expect(parse(["--json", "--", "--temp", "-n"])).toEqual({ json: true, _: ["--temp", "-n"] });
  });

  test("flags and positional arguments may be mixed, and a lone dash is one of the latter", () => {
    expect(parse(["info", "-n", "1", "a.gguf", "-"])).toEqual({
      maxTokens: 1,
      _: ["info", "a.gguf", "-"],
    });
  });
});

describe("refusals", () => {
  test.each([
    ["--prmopt hi", "unknown flag --prmopt; did you mean --prompt?"],
    ["--promt=hi", "unknown flag --promt; did you mean --prompt?"],
    ["--top_p 1", "unknown flag --top_p; did you mean --top-p?"],
    ["--temperature 1", "unknown flag --temperature; did you mean --temp?"],
    ["--max 1", "unknown flag --max; did you mean --max-tokens?"],
    ["--n 1", "unknown flag --n; did you mean -n?"],
    ["-prompt hi", "unknown flag -prompt; did you mean --prompt?"],
    ["-N 1", "unknown flag -N; did you mean -n?"],
    ["-x", "unknown flag -x; see zinc run --help"],
    ["-ngl 99", "unknown flag -ngl; see zinc run --help"],
    ["-n5x", "unknown flag -n5x; see zinc run --help"],
    ["--verbose", "unknown flag --verbose; see zinc run --help"],
    ["--__proto__", "unknown flag --__proto__; see zinc run --help"],
    ["--prompt", "--prompt needs a value; write --prompt <text>"],
    ["-n", "-n needs a value; write -n <n>"],
    [
      "--prompt --temp 0",
      "--prompt needs a value and is followed by the flag --temp; " +
        "write --prompt=--temp if that is the value",
    ],
    ["--color", "--color needs a value; write --color <auto|always|never>"],
    ["--color purple", "--color purple: must be auto, always or never; see zinc run --help"],
    ["--json=maybe", "--json maybe: must be on or off; see zinc run --help"],
    ["--prompt=", '--prompt "": must not be empty; see zinc run --help'],
    ["--stop=", '--stop "": must not be empty; see zinc run --help'],
    ["-n abc", "-n abc: must be a number; see zinc run --help"],
    ["-n 0x10", "-n 0x10: must be a number; see zinc run --help"],
    ["-n 1.5", "-n 1.5: must be a whole number; see zinc run --help"],
    ["-n -1", "-n -1: must be at least 0; see zinc run --help"],
    ["-n 1e30", "-n 1e30: must be at most 9007199254740991; see zinc run --help"],
    ["--temp -1", "--temp -1: must be 0 to 100; see zinc run --help"],
    ["--temp 101", "--temp 101: must be 0 to 100; see zinc run --help"],
    ["--temp NaN", "--temp NaN: must be a number; see zinc run --help"],
    ["--temp Infinity", "--temp Infinity: must be a number; see zinc run --help"],
    ["--temp=", '--temp "": must be a number; see zinc run --help'],
    ["--temp 0,5", "--temp 0,5: must be a number; see zinc run --help"],
    ["--top-p 2", "--top-p 2: must be above 0 and up to 1; see zinc run --help"],
    ["--top-p 0", "--top-p 0: must be above 0 and up to 1; see zinc run --help"],
    ["--devices 0,", "--devices 0,: must be names with commas between; see zinc run --help"],
    ["--memory 24", "--memory 24: must be sizes like 24GB or 500MB; see zinc run --help"],
    ["--memory 2GiB", "--memory 2GiB: must be sizes like 24GB or 500MB; see zinc run --help"],
    [
      "--tokens 1,,2",
      "--tokens 1,,2: must be whole numbers with commas between; see zinc run --help",
    ],
    [
      "--tokens 1;2",
      "--tokens 1;2: must be whole numbers with commas between; see zinc run --help",
    ],
    ["--tokens -1", "--tokens -1: must be at least 0; see zinc run --help"],
  ])("%s", (line, expected) => {
    expect(refusal(line.split(" "))).toBe(expected);
  });

  test("a long or multi-line value is cut and stays on one line", () => {
    const line = refusal(["--temp", `${"x".repeat(500)}\ny`]);
    expect(line).toBe(`--temp ${"x".repeat(60)}…: must be a number; see zinc run --help`);
    expect(refusal(["--temp", "a\nb"])).toBe("--temp a\\nb: must be a number; see zinc run --help");
  });
});

describe("variables", () => {
  test("stand in for flags that are not given", () => {
    expect(parse([], { ZINC_MAX_TOKENS: "7", ZINC_PROMPT: "hi", ZINC_JSON: "1" })).toEqual({
      maxTokens: 7,
      prompt: "hi",
      json: true,
      _: [],
    });
  });

  test("the command line wins", () => {
    expect(parse(["-n", "3", "--json=off"], { ZINC_MAX_TOKENS: "7", ZINC_JSON: "1" })).toEqual({
      maxTokens: 3,
      json: false,
      _: [],
    });
  });

  test("empty ones count as unset", () => {
    expect(parse([], { ZINC_MAX_TOKENS: "", ZINC_JSON: "" })).toEqual({ _: [] });
  });

  test.each(["0", "false", "off", "no", "OFF"])("%s switches off", (word) => {
    expect(parse([], { ZINC_JSON: word })).toEqual({ json: false, _: [] });
  });

  test("are checked like flags, and the error names the variable", () => {
    expect(refusal([], { ZINC_MAX_TOKENS: "many" })).toBe(
      "ZINC_MAX_TOKENS many: must be a number; correct or unset the variable",
    );
  });

  test("give a list of one", () => {
    expect(parse([], { ZINC_STOP: "a,b" })).toEqual({ stop: ["a,b"], _: [] });
  });
});
