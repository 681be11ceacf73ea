/** The help of every command, as it is printed without colour. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { benchCommand } from "../../src/cli/bench.ts";
import { checkCommand } from "../../src/cli/check.ts";
import { devicesCommand } from "../../src/cli/devices.ts";
import { logitsCommand } from "../../src/cli/logits.ts";
import { modelCommand } from "../../src/cli/model.ts";
import { setColor } from "../../src/cli/output.ts";
import { perplexityCommand } from "../../src/cli/perplexity.ts";
import { runCommand } from "../../src/cli/run.ts";
import { templateCommand } from "../../src/cli/template.ts";
import { tokenizeCommand } from "../../src/cli/tokenize.ts";
import { verifyCommand } from "../../src/cli/verify.ts";

const commands = [
  benchCommand,
  checkCommand,
  devicesCommand,
  logitsCommand,
  modelCommand,
  perplexityCommand,
  runCommand,
  templateCommand,
  tokenizeCommand,
  verifyCommand,
];

beforeAll(() => setColor("never"));
afterAll(() => setColor("auto"));

describe.each(commands)("the help of $name", (command) => {
  test("lists every flag with what it does, on lines that end with a word", async () => {
    const text = await command.help();
    expect(text).toStartWith(`${command.summary} (zinc ${command.name})\n\nUSAGE `);
    for (const { description } of Object.values(command.flags)) {
      expect(description).not.toBe("");
      expect(text).toContain(description);
    }
    expect(text).not.toMatch(/[ \t]$/m);
    expect(text).not.toContain("\u001b");
    expect(text).toEndWith("show this help\n");
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(96);
  });

  test("gives no letter to two flags", () => {
    const letters = Object.values(command.flags).flatMap(({ alias }) => alias ?? []);
    expect(letters).toEqual([...new Set(letters)]);
  });
});

test("colour is there when it is asked for", async () => {
  setColor("always");
  expect(await tokenizeCommand.help()).toContain("\u001b[");
  setColor("never");
});

test("the help of run", async () => {
  expect(await runCommand.help()).toMatchInlineSnapshot(`
    "Complete one prompt (zinc run)

    USAGE zinc run [OPTIONS]

    OPTIONS

               -m, --model=<file>    GGUF file; else $ZINC_MODEL, else the small model inside zinc
              -p, --prompt=<text>    what to say; text on stdin is put before it
                            --raw    the prompt as it is: no chat template, special tokens count
                   --tokens=<ids>    token ids as they are, instead of text: 1,2,3
                --template=<file>    a chat template (Jinja) instead of the model's own
                  --system=<text>    what the model is told before all else
            --think=<on|off|auto>    think before the answer; auto leaves it to the model (default)
                   --tools=<file>    functions that the model may call, as a list in JSON
             -n, --max-tokens=<n>    length of the answer; by default up to the end of the context
                       --temp=<t>    temperature; 0 always takes the best token (default 0.8)
                      --top-k=<k>    keep the k best tokens, 0 for all (default 40)
                      --top-p=<p>    keep tokens up to this probability in all (default 0.95)
                      --min-p=<p>    keep tokens this likely relative to the best (default 0.05)
             --repeat-penalty=<x>    weaken recent tokens by this factor (default 1)
           --presence-penalty=<x>    weaken tokens that occurred (default 0)
          --frequency-penalty=<x>    weaken tokens by how often they occurred (default 0)
                       --seed=<n>    the same seed gives the same text
           --logit-bias=<id=bias>    add to the logit of a token; -inf bans it
                    --stop=<text>    end the answer at this text; may be repeated
                     --ignore-eos    go on behind the tokens that usually end an answer
               -c, --ctx=<tokens>    context length; by default as much as fits, up to the model's
                  --kv-type=<f16>    type of the cache of keys and values
                  --deterministic    results that do not depend on how work is batched
            -d, --device=<device>    number or part of a name, as zinc devices lists them
                        --profile    time every kernel of the last step
                           --json    print one JSON object instead of text
                      -q, --quiet    nothing on stderr but errors
      --color=<auto|always|never>    coloured text (default auto)
                       -h, --help    show this help
    "
  `);
});

test("the help of tokenize", async () => {
  expect(await tokenizeCommand.help()).toMatchInlineSnapshot(`
    "Print the token ids of the text on stdin (zinc tokenize)

    USAGE zinc tokenize [OPTIONS]

    OPTIONS

               -m, --model=<file>    GGUF file; else $ZINC_MODEL, else the small model inside zinc
                        --special    the text may contain special tokens
                          --jsonl    a JSON string a line in, a list of ids a line out
      --color=<auto|always|never>    coloured text (default auto)
                       -h, --help    show this help
    "
  `);
});

test("the help of model, with its arguments", async () => {
  expect(await modelCommand.help()).toMatchInlineSnapshot(`
    "Look into model files (zinc model)

    USAGE zinc model [OPTIONS] [ACTION] [FILE]

    ARGUMENTS

      ACTION    info: what the file holds
        FILE    GGUF file, as behind -m

    OPTIONS

               -m, --model=<file>    GGUF file; else $ZINC_MODEL, else the small model inside zinc
                        --tensors    list every tensor
                           --json    print one JSON object instead of text
      --color=<auto|always|never>    coloured text (default auto)
                       -h, --help    show this help
    "
  `);
});
