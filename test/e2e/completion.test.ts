/** Completion as it is typed: real shells read zinc's script and get what is meant. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { answer, binary, cleanUp, environment, files, testTimeoutMs } from "../helpers/binary.ts";
import { session } from "../helpers/terminal.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const env = { PATH: `${join(binary, "..")}:/usr/bin:/bin`, PS1: "> ", TERM: "dumb" };
const has = (shell: string) =>
  ["/bin", "/usr/bin"].some((folder) => existsSync(`${folder}/${shell}`));

/** A folder with a file, where a managed model is, too. */
function prepare(): string {
  const place = join(files, "completion");
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, "a file.gguf"), "x");
  const models = environment["ZINC_MODELS"] ?? "";
  mkdirSync(join(models, "mine"), { recursive: true });
  writeFileSync(join(models, "mine/m.gguf"), "xyz");
  return place;
}

/** What stands on a line of bash after its keys were pressed. */
async function typed(line: string): Promise<string> {
  const bash = `cd "${prepare()}" && exec bash --norc --noprofile -i`;
  const { screen } = await session(bash, env, [
    // The word is broken up so that the screen shows it only when it is said.
    { after: /> $/, keys: "source <(zinc completion bash); echo rea''dy\n" },
    { after: /ready\r\n.*> $/s, keys: line },
    // Keys wait until the completion is done.
    { after: /zinc /, keys: "#" },
    // Ctrl+U takes the line away.
    { after: /#/, keys: "\u0015exit\n" },
  ]);
  return screen;
}

describe.skipIf(!has("bash"))("bash", () => {
  test.each([
    ["zinc mod\t", "zinc model "],
    ["zinc model pu\t", "zinc model pull "],
    ["zinc --max\t", "zinc --max-tokens "],
    ["zinc --color=al\t", "zinc --color=always "],
    ["zinc --color al\t", "zinc --color always "],
    ["zinc model pull phi\t", "zinc model pull phi-4-mini "],
    ["zinc -m mi\t", "zinc -m mine "],
    ["zinc -m a\t", "zinc -m a\\ file.gguf "],
    ["zinc completion f\t", "zinc completion fish "],
  ])("completes %j", async (keys, line) => {
    expect(await typed(keys)).toContain(`> ${line}`);
  });
});

test.skipIf(!has("fish"))("fish is offered words with what they mean", async () => {
  prepare();
  const script =
    'zinc completion fish | source; complete -C "zinc model pull phi"; complete -C "zinc -m "';
  const child = Bun.spawn(["fish", "--no-config", "-c", script], {
    cwd: prepare(),
    env: { ...environment, ...env },
    stdout: "pipe",
    stderr: "inherit",
  });
  expect(await new Response(child.stdout).text()).toBe(
    "phi-4-mini\tPhi-4 mini Instruct, Q4_K_M, 2.49 GB\n" +
      "a file.gguf\nmine\t3 bytes\nspark\tthe small model inside zinc\n",
  );
});

describe.each(["bash", "zsh", "fish"])("the script for %s", (shell) => {
  test.skipIf(!has(shell))("is one that the shell can read", async () => {
    const script = await answer(["completion", shell]);
    const { exitCode, stderr } = Bun.spawnSync([shell, "-n", "/dev/stdin"], {
      stdin: new TextEncoder().encode(script),
    });
    expect({ exitCode, err: stderr.toString() }).toEqual({ exitCode: 0, err: "" });
  });
});

test("asking for words never fails", async () => {
  for (const words of [[], ["--"], ["--", "model", "pull"], ["--", "nonsense", ""]]) {
    await answer(["completion", "candidates", ...words]);
  }
  expect(await answer(["completion", "candidates", "--", "tok"])).toBe(
    "tokenize\ttext to token ids\n",
  );
});
