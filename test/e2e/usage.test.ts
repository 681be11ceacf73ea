/** What a person sees who types something that zinc does not understand: exit code 2, one line. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  answer,
  cleanUp,
  noDriver,
  refusal,
  testTimeoutMs,
  write,
  zinc,
} from "../helpers/binary.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const emptyPrompt = 'the prompt is empty; say something, as in --prompt "Hello"';

describe("help and version", () => {
  test("zinc alone, help and --help say the same", async () => {
    const help = await answer([]);
    expect(help).toMatchInlineSnapshot(`
      "zinc runs large language models from GGUF files on any GPU with a Vulkan driver.

        zinc -m model.gguf --prompt "Hello"    complete a prompt
        zinc --prompt "Hello"                  the same with the small model inside zinc
        zinc chat                              hold a conversation
        zinc serve --open                      chat in a browser, and serve programs
        zinc --check                           is everything as it should be?

      Commands, each with --help:
        run         complete one prompt
        chat        hold a conversation
        serve       serve APIs and a page to chat over HTTP
        check       look at driver, device and model, and test them
        bench       measure speed
        verify      check every kernel on this device
        devices     list the Vulkan devices
        model       download, choose and look into models
        tokenize    text to token ids
        template    render a chat template
        logits      the raw output behind some tokens
        perplexity  how well a model predicts a text
        completion  let a shell complete commands, flags and models

      Every flag can also be set as a variable: --max-tokens as ZINC_MAX_TOKENS.
      "
    `);
    for (const args of [["--help"], ["-h"], ["help"]]) expect(await answer(args)).toBe(help);
  });

  test("each command has its help, which no other argument spoils", async () => {
    const help = await answer(["tokenize", "--help"]);
    expect(help).toStartWith("Print the token ids of the text on stdin (zinc tokenize)\n");
    for (const args of [
      ["help", "tokenize"],
      ["tokenize", "-h", "--jsonl", "surplus"],
    ]) {
      expect(await answer(args)).toBe(help);
    }
    expect(await answer(["--help", "-n", "5"])).toStartWith("Complete one prompt (zinc run)\n");
    expect(await answer(["--check", "--help"])).toContain("(zinc check)");
  });

  test("the version names zinc, its build, Bun and the shader compiler", async () => {
    const version = await answer(["--version"]);
    expect(version).toMatch(/^zinc \d+\.\d+\.\d+ \(.+\), Bun \d+\.\d+\.\d+, shaders by .+\n$/);
    for (const spelling of ["-v", "-V", "version"]) expect(await answer([spelling])).toBe(version);
  });

  test("colour is there only when asked for, in help as in errors", async () => {
    const help = ["tokenize", "--help"];
    expect(await answer(help)).not.toContain("\u001b");
    expect(await answer([...help, "--color", "always"])).toContain("\u001b[");
    expect(await answer(help, { env: { FORCE_COLOR: "1" } })).toContain("\u001b[");
    expect(await answer(help, { env: { FORCE_COLOR: "1", NO_COLOR: "1" } })).not.toContain(
      "\u001b",
    );
    expect(await answer(help, { env: { FORCE_COLOR: "1", ZINC_COLOR: "never" } })).not.toContain(
      "\u001b",
    );
    const { err } = await zinc(["--color=always", "--bogus"]);
    expect(err).toBe("\u001b[31mzinc: \u001b[0munknown flag --bogus; see zinc run --help\n");
  });
});

describe("a mistyped line", () => {
  test.each([
    [["rnu"], 'unknown command "rnu"; did you mean run?'],
    [["tokenise"], 'unknown command "tokenise"; did you mean tokenize?'],
    [["constructor"], 'unknown command "constructor"; zinc --help lists the commands'],
    [["hello"], 'unknown command "hello"; zinc --help lists the commands'],
    [
      ["Why is the sky blue?"],
      'unknown command "Why is the sky blue?"; ' +
        'put a prompt behind --prompt, as in zinc --prompt "Hello"',
    ],
    [["qwen.gguf"], 'unknown command "qwen.gguf"; write zinc -m qwen.gguf --prompt "Hello"'],
    [["--prmopt", "Hi"], "unknown flag --prmopt; did you mean --prompt?"],
    [["tokenize", "--jsnl"], "unknown flag --jsnl; did you mean --jsonl?"],
    [["tokenize", "--temp", "0"], "unknown flag --temp; see zinc tokenize --help"],
    [["--prompt"], "--prompt needs a value; write --prompt <text>"],
    [
      ["--prompt", "--temp", "0"],
      "--prompt needs a value and is followed by the flag --temp; " +
        "write --prompt=--temp if that is the value",
    ],
    [
      ["run", "Hello"],
      'unexpected argument "Hello"; ' +
        'put a prompt behind --prompt, as in --prompt "Hello", and a command in front',
    ],
    [
      ["-m", "x.gguf", "tokenize"],
      'unexpected argument "tokenize"; ' +
        'put a prompt behind --prompt, as in --prompt "Hello", and a command in front',
    ],
    [["devices", "all"], 'unexpected argument "all"; see zinc devices --help'],
    [["verify", "rms_nrm"], 'unknown kernel "rms_nrm"; did you mean rms_norm?'],
    [["model"], "no action is given; write zinc model list|pull|use|active|rm|info"],
    [["model", "use"], "no model is named; zinc model list shows the names"],
    [
      ["model", "pull", "hf:x"],
      "x names no model of the hub; write hf:owner/repo/file.gguf, or hf:owner/repo:Q4_K_M",
    ],
    [
      ["model", "pull", "a.gguf", "--name", "a/b"],
      '"a/b" cannot name a model; use letters, digits, ".", "_" and "-", at most 100',
    ],
    [
      ["model", "rm", "spark"],
      "spark is the model inside zinc; zinc model list --installed shows what can be removed",
    ],
    [["completion"], "no shell is named; write zinc completion bash|zsh|fish"],
    [["completion", "bsh"], 'unknown shell "bsh"; did you mean bash?'],
    [["model", "inof"], 'unknown action "inof"; did you mean info?'],
    [["model", "a.gguf"], 'unknown action "a.gguf"; write zinc model info a.gguf'],
    [["logits"], "no tokens are given; write --tokens 1,2,3"],
    [["perplexity"], "no text is given; write -f FILE"],
    [
      ["bench", "-p", "4000"],
      "this needs a context of 4000 tokens and Spark Llama has 2048; " +
        "choose smaller numbers for -p, -n or --depth",
    ],
  ])("zinc %p", async (args, expected) => {
    expect(await refusal(2, args)).toBe(expected);
  });
});

describe("a bad value", () => {
  test.each([
    [["--temp", "-1"], "--temp -1: must be 0 to 100; see zinc run --help"],
    [["--temp", "NaN"], "--temp NaN: must be a number; see zinc run --help"],
    [["--top-p", "2"], "--top-p 2: must be above 0 and up to 1; see zinc run --help"],
    [["--min-p=-0.1"], "--min-p -0.1: must be 0 to 1; see zinc run --help"],
    [["--top-k", "-1"], "--top-k -1: must be 0 to 1073741824; see zinc run --help"],
    [
      ["--repeat-penalty", "0"],
      "--repeat-penalty 0: must be above 0 and up to 100; see zinc run --help",
    ],
    [["--seed", "-1"], "--seed -1: must be at least 0; see zinc run --help"],
    [["-n", "-1"], "-n -1: must be at least 0; see zinc run --help"],
    [["-c", "0"], "-c 0: must be at least 1; see zinc run --help"],
    [["-m", ""], '-m "": must not be empty; see zinc run --help'],
    [
      ["--kv-type", "q8"],
      "--kv-type q8: must be one or two (for K,V) of f16, q8_0, tq4, tq3; see zinc run --help",
    ],
    [["--draft", "yes"], "--draft yes: must be ngram, mtp or off; see zinc run --help"],
    [["--logit-bias", "x"], "--logit-bias x is not id=bias; write --logit-bias 123=-1.5"],
    [["--tokens", "1"], "--tokens and --prompt exclude each other; give one of them"],
    [["--raw", "--template", "x"], "--raw and --template exclude each other; give one of them"],
    [["--template", "/none"], "/none cannot be read (ENOENT); check the path"],
  ])("zinc --prompt Hi %p", async (args, expected) => {
    expect(await refusal(2, ["--prompt", "Hi", ...args])).toBe(expected);
  });

  test("in a variable is refused by that name", async () => {
    const env = { ZINC_TEMP: "hot" };
    expect(await refusal(2, ["--prompt", "Hi"], { env })).toBe(
      "ZINC_TEMP hot: must be a number; correct or unset the variable",
    );
  });
});

describe("an empty prompt", () => {
  test.each([
    ["none", [], ""],
    ["an empty one", ["--prompt", ""], ""],
    ["white space", ["--prompt", " \t\n"], ""],
    ["white space on stdin", [], " \n\n"],
    ["white space on both", ["--prompt", " "], "\n"],
    ["none with --raw", ["--raw"], ""],
  ])("%s", async (_name, args, stdin) => {
    expect(await refusal(2, ["run", ...args], { stdin })).toBe(emptyPrompt);
  });
});

describe("text that is no UTF-8", () => {
  const stdin = Uint8Array.of(0x48, 0x69, 0xff, 0xfe);
  const remedy = "convert it first, for instance with iconv";

  test.each([
    [["run"]],
    [["--prompt", "Hi"]],
    [["tokenize"]],
    [["template"]],
    [["perplexity", "-f", "-"]],
  ])("on stdin of zinc %p", async (args) => {
    expect(await refusal(2, args, { stdin })).toBe(`stdin is no valid UTF-8; ${remedy}`);
  });

  test("in a file", async () => {
    const path = write("latin1.txt", stdin);
    expect(await refusal(2, ["perplexity", "-f", path])).toBe(
      `${path} is no valid UTF-8; ${remedy}`,
    );
  });

  test("an unfinished character at the end", async () => {
    const cut = Uint8Array.of(0x48, 0xe2, 0x82);
    expect(await refusal(2, ["tokenize"], { stdin: cut })).toStartWith("stdin is no valid UTF-8");
  });
});

describe("bad JSON", () => {
  const remedy = 'write {"messages": [{"role": "user", "content": "Hello"}]}';

  test.each(["", "{", "[]", "null", '"text"', '{"messages": []} {}'])(
    "%p is nothing for template",
    async (stdin) => {
      expect(await refusal(2, ["template"], { stdin })).toBe(`stdin is no JSON object; ${remedy}`);
    },
  );

  test("what the template refuses is told in its own words", async () => {
    const path = write("strict.jinja", "{{ raise_exception('only one message, please') }}");
    expect(await refusal(2, ["template", "--template", path], { stdin: "{}" })).toBe(
      "the chat template refused this: only one message, please; " +
        "check the input, or give another template with --template",
    );
    expect(await refusal(2, ["--template", path, "--prompt", "Hi"])).toContain(
      "the chat template refused this: only one message, please; check the messages",
    );
  });

  test("a line of --jsonl is named by its number", async () => {
    expect((await zinc(["tokenize", "--jsonl"], { stdin: '"a"\n{"b": 1}\n' })).err).toBe(
      'zinc: line 2 of stdin is no JSON string; write "text" in double quotes\n',
    );
  });
});

describe.skipIf(noDriver !== undefined)("what only the model can tell", () => {
  test.each([
    [
      ["-c", "10", "--prompt", "one two three four five six seven eight"],
      /^the prompt has \d+ tokens and the context 10; shorten the prompt or choose a longer /,
    ],
    [
      ["-c", "4096", "--prompt", "Hi"],
      /^a context of 4096 tokens is more than Spark Llama was made for; choose -c up to 2048$/,
    ],
    [["--tokens", "4096"], /^token 4096 is not in the vocabulary; ids go from 0 to 4095$/],
    [
      ["--logit-bias", "4096=1", "--prompt", "Hi"],
      /^token 4096 is not in the vocabulary; ids go from 0 to 4095$/,
    ],
    [["logits", "--tokens", "1,4096"], /^token 4096 is not in the vocabulary; /],
    [["perplexity", "-f", "-"], /^the text has 0 tokens and a window 512; choose a smaller --ctx$/],
  ])("zinc %p", async (args, expected) => {
    expect(await refusal(2, args)).toMatch(expected);
  });
});

test("ZINC_DEBUG=1 adds a stack to the line", async () => {
  const { code, err } = await zinc(["--bogus"], { env: { ZINC_DEBUG: "1" } });
  expect(code).toBe(2);
  expect(err).toStartWith("zinc: unknown flag --bogus; see zinc run --help\n");
  expect(err).toMatch(/^\s+at /m);
});
