/** Ctrl+C and termination: exit codes 130 and 143, what was made so far, and never a hang. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cleanUp, noDriver, start, testTimeoutMs, write } from "../helpers/binary.ts";
import { readUntil, rest } from "../helpers/reading.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const story = ["--prompt", "Tell me a story about a fox", "--ignore-eos", "-c", "2048"];

describe.skipIf(noDriver !== undefined)("while text is made", () => {
  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("%s ends it with what there is, and exit code %i", async (signal, code) => {
    const child = start(story);
    const [out, err] = [child.stdout.getReader(), child.stderr.getReader()];
    const begun = await readUntil(out, /\w+ \w+/);
    const sent = performance.now();
    child.kill(signal);
    const text = begun + (await rest(out));
    expect(await child.exited).toBe(code);
    expect(performance.now() - sent).toBeLessThan(5000);
    expect(text).toEndWith("\n");
    expect(await rest(err)).toMatch(/\d+ prompt tokens at .+ tok\/s, \d+ tokens at .+ tok\/s\n$/);
  });

  test("the object of --json is whole, and says that it was cancelled", async () => {
    const child = start([...story, "--json", "--quiet"]);
    await Bun.sleep(1500);
    child.kill("SIGINT");
    const out = await new Response(child.stdout).text();
    expect(await child.exited).toBe(130);
    // Early on there is no model yet, and so no result.
    if (out !== "") expect(JSON.parse(out)).toMatchObject({ finishReason: "cancelled" });
  });

  test("a second signal ends the program at once", async () => {
    const child = start(story);
    await readUntil(child.stdout.getReader(), /\w/);
    child.kill("SIGINT");
    child.kill("SIGINT");
    const sent = performance.now();
    expect(await child.exited).toBe(130);
    expect(performance.now() - sent).toBeLessThan(3000);
  });
});

describe.skipIf(noDriver !== undefined)("elsewhere", () => {
  /** Signals a run after something has come on a stream, or after a while. */
  async function interrupt(args: readonly string[], delayMs: number) {
    const child = start(args);
    await Bun.sleep(delayMs);
    const sent = performance.now();
    child.kill("SIGINT");
    const [code, out, err] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect(err).not.toMatch(/^\s+at /m);
    return { code, out, ms: performance.now() - sent };
  }

  test.each([
    [["verify"], 1500],
    [["--check"], 400],
    [["bench", "-p", "32", "-n", "16", "-r", "1000"], 1500],
  ])("zinc %p ends soon", async (args, delayMs) => {
    const { code, ms } = await interrupt(args, delayMs);
    expect(code).toBe(130);
    expect(ms).toBeLessThan(60_000);
  });

  test("perplexity tells what it has found so far", async () => {
    const path = write("text.txt", "The fox went over the hill and saw the town. ".repeat(2000));
    const child = start(["perplexity", "-f", path, "--ctx", "16"]);
    await readUntil(child.stderr.getReader(), /running on/);
    await Bun.sleep(1500);
    child.kill("SIGINT");
    const out = await new Response(child.stdout).text();
    expect(await child.exited).toBe(130);
    expect(out).toMatch(
      /^(perplexity [\d.]+ over \d+ tokens, windows of 16, cache f16 with [\d.]+ kB a token\n)?$/,
    );
  });

  test("waiting for stdin ends at once", async () => {
    const child = start(["run"], { stdin: null });
    await Bun.sleep(700);
    const sent = performance.now();
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
    expect(performance.now() - sent).toBeLessThan(2000);
  });
});
