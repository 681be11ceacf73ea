/** The library as other programs use it: `import { load } from "zinc"`, run by Bun. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { cleanUp, environment, files, noDriver, testTimeoutMs } from "../helpers/binary.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const root = join(import.meta.dir, "../..");

/** The script of the README. */
const readmeScript = `import { load } from "zinc";

const model = await load(); // or load("model.gguf")
const answer = model.generate("What is 7 + 5?", { temperature: 0, maxTokens: 50 });
for await (const piece of answer) process.stdout.write(piece);
console.log();
const { finishReason, tokens } = await answer.result();
console.log(tokens.length, "tokens,", finishReason);
console.log(model.logits(model.tokenize("Hello")).length);
model.close();
`;

const failingScript = `import { load, UserError } from "zinc";

try {
  await load("/none.gguf");
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  console.log(error.kind, "|", error.message, "|", error.remedy);
}
`;

/** A project whose node_modules holds this one, as after an installation. */
async function runScript(text: string) {
  const project = join(files, `project-${Bun.hash(text).toString(36)}`);
  mkdirSync(join(project, "node_modules"), { recursive: true });
  symlinkSync(root, join(project, "node_modules/zinc"));
  await Bun.write(join(project, "script.ts"), text);
  const child = Bun.spawn([process.execPath, "run", "script.ts"], {
    cwd: project,
    env: environment,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code };
}

describe.skipIf(noDriver !== undefined)("a script", () => {
  test("of ten lines loads, generates, tokenizes, looks at logits and ends", async () => {
    expect(readmeScript.trimEnd().split("\n")).toHaveLength(10);
    const { out, err, code } = await runScript(readmeScript);
    expect({ err, code }).toEqual({ err: "", code: 0 });
    expect(out).toMatch(/^[^\n]*12[^\n]*\n\d+ tokens, stop\n4096\n$/);
  });
});

test("a script gets a UserError for what the world does to it", async () => {
  expect(await runScript(failingScript)).toEqual({
    out: "model | cannot open /none.gguf: no such file | check the path\n",
    err: "",
    code: 0,
  });
});
