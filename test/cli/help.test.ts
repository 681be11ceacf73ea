/** The help of every command, as it is printed without colour. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { modelCommand } from "../../src/cli/model.ts";
import { parseOptions } from "../../src/cli/options.ts";
import { setColor } from "../../src/cli/output.ts";
import { runCommand } from "../../src/cli/run.ts";
import { tokenizeCommand } from "../../src/cli/tokenize.ts";
import { commands, findCommand, shellWords } from "./commands.ts";

beforeAll(() => setColor("never"));
afterAll(() => setColor("auto"));

describe.each(commands)("the help of $name", (command) => {
  test("lists every flag with what it does, on lines that end with a word", async () => {
    const text = await command.help();
    expect(text).toStartWith(`${command.summary} (zinc ${command.name})\n\nUSAGE zinc `);
    for (const { description } of Object.values(command.flags)) {
      expect(description).not.toBe("");
      expect(text).toContain(description);
    }
    expect(text).not.toMatch(/[ \t]$/m);
    expect(text).not.toContain("\u001b");
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(96);
  });

  test("is a page of a manual: with prose, examples and exit codes", async () => {
    const text = await command.help();
    const headings: readonly string[] = text.match(/^[A-Z][A-Z ]+$/gm) ?? [];
    const rest = ["OPTIONS", "EXAMPLES", "ENVIRONMENT", "EXIT CODES"];
    expect(headings.filter((heading) => rest.includes(heading))).toEqual(
      rest.filter((heading) => heading !== "ENVIRONMENT" || headings.includes(heading)),
    );
    expect(text).toMatch(/^USAGE .+\n\n[A-Za-z][^\n]+ [^\n]+\n/m);
    expect(text).toMatch(/\nEXIT CODES\n\n {2}0 {4,}\S.*\n {2}1 {4,}\S.*\n {2}2 {4,}\S/);
  });

  test("gives no letter to two flags", () => {
    const letters = Object.values(command.flags).flatMap(({ alias }) => alias ?? []);
    expect(letters).toEqual([...new Set(letters)]);
  });

  test("has only examples that zinc understands", async () => {
    const [, section = ""] = (await command.help()).split("\nEXAMPLES\n\n");
    const [examples = ""] = section.split("\n\n");
    const lines = examples.match(/(?<=^ {2})\S.*?(?= {4}|$)/gm) ?? [];
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      const words = shellWords(line);
      expect(words.length).toBeGreaterThan(0);
      const { command: found, rest } = findCommand(words);
      const { positionals } = parseOptions(rest, found.flags, {});
      const taken = Object.values(found.positionals);
      const isOpen = taken.at(-1)?.repeats === true;
      expect(positionals.length).toBeLessThanOrEqual(isOpen ? Infinity : taken.length);
    }
  });
});

test("colour is there when it is asked for", async () => {
  setColor("always");
  expect(await tokenizeCommand.help()).toContain("\u001b[");
  setColor("never");
});

test("the help of run, up to its flags", async () => {
  const [text] = (await runCommand.help()).split("\nEXAMPLES\n");
  expect(text).toMatchInlineSnapshot(`
    "Complete one prompt (zinc run)

    USAGE zinc run [OPTIONS]

    Puts the prompt into the model's chat template, if it has one, and prints the answer as
    it is made. Text on stdin comes before the prompt, on lines of its own. The name of the
    command may be left out.

    The answer goes to stdout and everything else to stderr. Ctrl+C ends the answer with
    what there is of it.

    OPTIONS

              -m, --model=<model>    file or managed name (default $ZINC_MODEL, else the active one)
              -p, --prompt=<text>    what to say, behind the text on stdin (default empty)
                            --raw    the prompt as it is: no chat template, special tokens count
                   --tokens=<ids>    token ids instead of text, as they are: 1,2,3 (default none)
                --template=<file>    a chat template in Jinja (default the model's own)
                  --system=<text>    what the model is told before all else (default nothing)
            --think=<on|off|auto>    think before the answer; auto leaves it to the model (default)
                   --tools=<file>    functions the model may call, a list in JSON (default none)
                 --grammar=<gbnf>    hold the answer to a grammar in GBNF (default none)
            --grammar-file=<file>    the same from a file (default none)
             --json-schema=<json>    the same for a JSON schema, or a file of one (default none)
             -n, --max-tokens=<n>    length of the answer; by default up to the end of the context
                       --temp=<t>    temperature; 0 always takes the best token (default 0.8)
                      --top-k=<k>    keep the k best tokens, 0 for all (default 40)
                      --top-p=<p>    keep tokens up to this probability in all (default 0.95)
                      --min-p=<p>    keep tokens this likely relative to the best (default 0.05)
             --repeat-penalty=<x>    weaken recent tokens by this factor (default 1)
           --presence-penalty=<x>    weaken tokens that occurred (default 0)
          --frequency-penalty=<x>    weaken tokens by how often they occurred (default 0)
                       --seed=<n>    the same seed gives the same text (default random)
           --logit-bias=<id=bias>    add to the logit of a token, -inf bans it (default none)
                    --stop=<text>    end the answer at this text; may be repeated (default none)
                     --ignore-eos    go on behind the tokens that usually end an answer
               -c, --ctx=<tokens>    context length; by default as much as fits, up to the model's
                 --kv-type=<type>    of the cache: f16, q8_0, tq4, tq3, or two for K,V (default f16)
                  --deterministic    results that do not depend on how work is batched
          --draft=<ngram|mtp|off>    guess tokens and verify several at once (default ngram on GPUs)
            -d, --device=<device>    number or part of a name, from zinc devices (default the best)
                 --devices=<list>    spread the layers over these, as 0,1 (default one device)
           --device-memory=<list>    to take of each at most, as 24GB,12GB (default what is free)
                        --profile    time every kernel of the last step
                           --json    print one JSON object instead of text
                      -q, --quiet    nothing on stderr but errors
      --color=<auto|always|never>    coloured text (default auto)
                       -h, --help    show this help
    "
  `);
});

test("the help of run, behind its flags", async () => {
  const [, text] = (await runCommand.help()).split("\nEXAMPLES\n");
  expect(text).toMatchInlineSnapshot(`
    "
      zinc --prompt "Why is the sky blue?"            ask the active model
      zinc -m qwen3.5-2b --prompt "Hello" --temp 0    the same answer each time
      zinc -p "Sum this up." < report.txt             a question about a text
      zinc -m model.gguf --raw -p "def fib(n):" -n 64
                                                      go on with a text, without a template
      zinc -p "Your move?" --grammar-file moves.gbnf
                                                      an answer of a given form
      zinc -p Hello --json | jq .timings              one JSON object instead of text

    ENVIRONMENT

      ZINC_MODELS        folder of the managed models; default $XDG_DATA_HOME/zinc/models
      XDG_CONFIG_HOME    where zinc/config.json names the active model; default ~/.config
      ZINC_NOW           the time that templates are told; default now
      ZINC_MODEL         stands in for --model, and so for every other flag

    EXIT CODES

      0      it went well
      1      it failed
      2      the arguments are wrong
      3      the model is missing, unreadable, damaged or not supported
      4      there is no Vulkan loader, driver or usable device
      5      the model does not fit into the memory of the device
      130    it was interrupted with Ctrl+C; 143: it was terminated
    "
  `);
});

test("the help of tokenize", async () => {
  expect(await tokenizeCommand.help()).toMatchInlineSnapshot(`
    "Print the token ids of the text on stdin (zinc tokenize)

    USAGE zinc tokenize [OPTIONS]

    Prints a JSON list of ids. Nothing is added: no token for the beginning or the end.
    Special tokens in the text are plain text unless --special is given. It needs no GPU,
    and works with files that hold only a vocabulary.

    OPTIONS

              -m, --model=<model>    file or managed name (default $ZINC_MODEL, else the active one)
                        --special    the text may contain special tokens
                          --jsonl    a JSON string a line in, a list of ids a line out
      --color=<auto|always|never>    coloured text (default auto)
                       -h, --help    show this help

    EXAMPLES

      printf "Hello" | zinc tokenize                  ids of a text
      zinc tokenize -m model.gguf --special < prompt.txt
                                                      a prompt with special tokens in it
      zinc tokenize --jsonl < texts.jsonl             many texts, one a line

    ENVIRONMENT

      ZINC_MODELS        folder of the managed models; default $XDG_DATA_HOME/zinc/models
      XDG_CONFIG_HOME    where zinc/config.json names the active model; default ~/.config
      ZINC_MODEL         stands in for --model, and so for every other flag

    EXIT CODES

      0    it went well
      1    it failed
      2    the arguments are wrong
      3    the model is missing, unreadable, damaged or not supported
    "
  `);
});

test("the help of model, with its actions", async () => {
  expect(await modelCommand.help()).toMatchInlineSnapshot(`
    "Download, choose and look into models (zinc model)

    USAGE zinc model ACTION [OPTIONS]

    zinc keeps models under short names, which -m takes as well as the path of a file. One
    of them can be the active model, which is used where none is named.

    Names come from a list inside zinc (zinc model list); any other GGUF file on the hub or
    on a web server can be had by its address, and one on this machine by its path.

    ACTIONS

      list      which models there are, and which fit this device
      pull      download a model, or take over a file
      use       choose the model that is used where none is named
      active    print the model that is used where none is named
      rm        remove a model
      info      show what a model holds, without a GPU

    OPTIONS

      --color=<auto|always|never>    coloured text (default auto)
                       -h, --help    show this help

    EXAMPLES

      zinc model list                     what is there, and what could be
      zinc model pull qwen3.5-2b --use    download a model, and use it from now on
      zinc model info model.gguf          look into a file

    ENVIRONMENT

      ZINC_MODELS        folder of the managed models; default $XDG_DATA_HOME/zinc/models
      XDG_CONFIG_HOME    where zinc/config.json names the active model; default ~/.config

    EXIT CODES

      0    it went well
      1    it failed
      2    the arguments are wrong
      3    the model is missing, damaged or not supported
    "
  `);
});
